//! Ears: an audio tower on a device, or a model's way without one. Sounds in, rows in the decoder's space out.

use std::rc::Rc;

use rullama_engine::{
    cpu::Data,
    executor::{Device, Weights},
    gpu::profile::Table,
    graph::Cost,
};
use rullama_gguf::Gguf;
use rullama_media::{
    MediaError,
    sound::{PIECE, Sound, features, frames_of_samples},
};
use rullama_models::{
    Catalog, Expected,
    gemma4::{
        Clamps,
        audio::{AudioConfig, AudioInputs, AudioTower, DirectAudio, direct, distance_rows, tower},
    },
};

use crate::{
    error::RuntimeError,
    session::{Tap, keep_tapped, tap},
    tower::{Inputs, Last, Ready, SoftTokens, bytes_with_weights, clamps, weights},
};

/// How many rows before it a row hears, as the weights were trained; some programs stop one short.
pub const REACH: usize = 12;

/// How a model hears.
#[derive(Debug)]
enum Form {
    Tower(Box<AudioConfig>, Clamps),
    Direct(DirectAudio),
}

/// What can hear, its weights on a device.
#[derive(Debug)]
pub struct Hearing {
    device: Device,
    form: Form,
    catalog: Catalog,
    weights: Weights,
    last: Last<(usize, usize)>,
}

impl Hearing {
    /// Loads what hears in a projector file, or in a model with its towers inside; `None` if there is nothing.
    ///
    /// # Errors
    /// If it is broken, makes rows of another width than the decoder reads, or does not fit the device.
    pub async fn load(
        gguf: Rc<Gguf>,
        device: Device,
        width: usize,
    ) -> Result<Option<Self>, RuntimeError> {
        let Some(mut form) = Form::of_file(&gguf)? else { return Ok(None) };
        if let Form::Tower(config, limits) = &mut form {
            *limits = clamps(&gguf, &config.products(), None).await?;
        }
        if form.out() != width {
            return Err(RuntimeError::OtherTower { tower: form.out(), model: width });
        }
        let catalog = Catalog::of_file(&gguf, &form.expected())?;
        let weights = weights(&gguf, &device, form.graph(&catalog, 1, REACH).graph).await?;
        Ok(Some(Self { device, form, catalog, weights, last: Last::default() }))
    }

    /// Bytes on a GPU that what hears in a file will take for the longest piece, as its header tells; nothing where nothing hears.
    ///
    /// # Errors
    /// If it is broken.
    pub fn memory_of_file(gguf: &Gguf) -> Result<u64, RuntimeError> {
        let Some(form) = Form::of_file(gguf)? else { return Ok(0) };
        let catalog = Catalog::of_file(gguf, &form.expected())?;
        let rows = match &form {
            Form::Tower(..) => frames_of_samples(PIECE),
            Form::Direct(config) => PIECE / config.frame,
        };
        Ok(bytes_with_weights(&form.graph(&catalog, rows, REACH).graph))
    }

    /// Bytes on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.weights.gpu_bytes() + self.last.gpu_bytes()
    }

    /// The soft tokens of a sound, those of all its pieces in a row.
    ///
    /// # Errors
    /// If the sound is too short, or the device fails.
    pub async fn hear(&self, sound: &Sound, reach: usize) -> Result<SoftTokens, RuntimeError> {
        let mut values = Vec::new();
        for piece in self.form.pieces(sound)? {
            let (rows, inputs) = self.form.inputs(piece, reach);
            values.extend(self.ready(rows, reach).await?.run(inputs, rows).await?);
        }
        Ok(SoftTokens { count: values.len() / self.form.out(), values })
    }

    /// Every named value on the way to the soft tokens of a sound's first piece.
    ///
    /// # Errors
    /// As [`Self::hear`].
    pub async fn trace(&self, sound: &Sound, reach: usize) -> Result<Vec<Tap>, RuntimeError> {
        let (rows, inputs) = self.form.inputs(self.form.pieces(sound)?[0], reach);
        let AudioTower { mut graph, result } = self.form.graph(&self.catalog, rows, reach);
        let values = keep_tapped(&mut graph);
        let names: Vec<_> = values.iter().map(|value| graph.info(*value).clone()).collect();
        let ready = Ready::new(graph, result, &self.weights, &self.device).await?;
        let data = ready.run_reading(inputs, rows, &values).await?;
        Ok(names.iter().zip(data).map(|(info, data)| tap(info, data)).collect())
    }

    /// What the first piece of a sound costs, and how long its dispatches take where the device has clocks.
    ///
    /// # Errors
    /// As [`Self::hear`].
    pub async fn profile(&self, sound: &Sound) -> Result<(Cost, Option<Table>), RuntimeError> {
        let (rows, _) = self.form.inputs(self.form.pieces(sound)?[0], REACH);
        let ready = self.ready(rows, REACH).await?;
        Ok((ready.cost(rows), ready.profile(rows).await?))
    }

    /// The graph for so many rows, made ready if it is not.
    async fn ready(&self, rows: usize, reach: usize) -> Result<Rc<Ready>, RuntimeError> {
        if let Some(ready) = self.last.get(&(rows, reach)) {
            return Ok(ready);
        }
        let AudioTower { graph, result } = self.form.graph(&self.catalog, rows, reach);
        let ready = Rc::new(Ready::new(graph, result, &self.weights, &self.device).await?);
        self.last.put((rows, reach), ready.clone());
        Ok(ready)
    }
}

impl Form {
    /// How the model of a file hears, without limits, which have to be read.
    fn of_file(gguf: &Gguf) -> Result<Option<Self>, RuntimeError> {
        if let Some(direct) = DirectAudio::of_file(gguf)? {
            return Ok(Some(Self::Direct(direct)));
        }
        let tower = AudioConfig::of_file(gguf)?;
        Ok(tower.map(|config| Self::Tower(Box::new(config), Clamps::default())))
    }

    fn out(&self) -> usize {
        match self {
            Self::Tower(config, _) => config.out,
            Self::Direct(config) => config.out,
        }
    }

    fn expected(&self) -> Vec<Expected> {
        match self {
            Self::Tower(config, _) => config.expected(),
            Self::Direct(config) => config.expected(),
        }
    }

    /// The graph for so many rows of features or samples.
    fn graph(&self, catalog: &Catalog, rows: usize, reach: usize) -> AudioTower {
        match self {
            Self::Tower(config, clamps) => tower(config, catalog, clamps, rows, reach),
            Self::Direct(config) => direct(config, catalog, rows),
        }
    }

    /// What is heard at once. Frames without a tower know nothing of each other: any sound has some.
    fn pieces<'a>(&self, sound: &'a Sound) -> Result<Vec<&'a [f32]>, MediaError> {
        match self {
            Self::Tower(..) => sound.pieces(),
            Self::Direct(_) if sound.samples().is_empty() => {
                Err(MediaError::TooShort { samples: 0 })
            }
            Self::Direct(config) => {
                let whole = (PIECE / config.frame).max(1) * config.frame;
                Ok(sound.samples().chunks(whole).collect())
            }
        }
    }

    /// Rows of a piece, and what the host writes.
    fn inputs(&self, piece: &[f32], reach: usize) -> (usize, Inputs) {
        match self {
            Self::Tower(config, _) => {
                let features = features(piece);
                let distances = distance_rows(reach, config.width);
                let inputs = vec![
                    (AudioInputs::FEATURES, Data::F32(features.values)),
                    (AudioInputs::DISTANCES, Data::F32(distances)),
                ];
                (features.frames, inputs)
            }
            Self::Direct(config) => {
                let rows = piece.len().div_ceil(config.frame);
                let mut samples = piece.to_vec();
                samples.resize(rows * config.frame, 0.0);
                (rows, vec![(AudioInputs::FEATURES, Data::F32(samples))])
            }
        }
    }
}
