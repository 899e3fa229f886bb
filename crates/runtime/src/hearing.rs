//! Ears: an audio tower on a device. Sounds in, rows in the decoder's space out.

use std::rc::Rc;

use rullama_engine::{
    cpu::Data,
    executor::{Device, Weights},
    graph::Value,
};
use rullama_gguf::Gguf;
use rullama_media::sound::{Sound, features};
use rullama_models::{
    Catalog,
    gemma4::{
        Clamps,
        audio::{AudioConfig, AudioInputs, AudioTower, distance_rows, tower},
    },
};

use crate::{
    error::RuntimeError,
    session::{Tap, keep_tapped, tap},
    tower::{Inputs, SoftTokens, clamps, run, weights},
};

/// How many rows before it a row hears, as the weights were trained; some programs stop one short.
pub const REACH: usize = 12;

/// An audio tower whose weights are on a device.
#[derive(Debug)]
pub struct Hearing {
    device: Device,
    config: AudioConfig,
    catalog: Catalog,
    clamps: Clamps,
    weights: Weights,
}

impl Hearing {
    /// Loads the tower of a projector file, or of a model with its towers inside; `None` if there is none.
    ///
    /// # Errors
    /// If the tower is broken, makes rows of another width than the decoder reads, or does not fit the device.
    pub async fn load(
        gguf: Rc<Gguf>,
        device: Device,
        width: usize,
    ) -> Result<Option<Self>, RuntimeError> {
        let Some(config) = AudioConfig::of_file(&gguf)? else { return Ok(None) };
        if config.out != width {
            return Err(RuntimeError::OtherTower { tower: config.out, model: width });
        }
        let catalog = Catalog::of_file(&gguf, &config.expected())?;
        let clamps = clamps(&gguf, &config.products(), None).await?;
        let list = tower(&config, &catalog, &clamps, 1, REACH).graph;
        let weights = weights(&gguf, &device, &list).await?;
        Ok(Some(Self { device, config, catalog, clamps, weights }))
    }

    /// What the file says.
    pub fn config(&self) -> &AudioConfig {
        &self.config
    }

    /// Bytes on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.weights.gpu_bytes()
    }

    /// The soft tokens of a sound, those of all its pieces in a row.
    ///
    /// # Errors
    /// If the sound is too short, or the device fails.
    pub async fn hear(&self, sound: &Sound, reach: usize) -> Result<SoftTokens, RuntimeError> {
        let mut all = SoftTokens { count: 0, values: Vec::new() };
        for piece in sound.pieces()? {
            let (list, inputs, frames) = self.prepare(piece, reach);
            let result = list.result;
            let mut data = self.run(list, inputs, (frames, &[result])).await?;
            all.values.extend(data.pop().map_or(Vec::new(), |data| data.f32().to_vec()));
        }
        all.count = all.values.len() / self.config.out;
        Ok(all)
    }

    /// Every named value on the way to the soft tokens of a sound's first piece.
    ///
    /// # Errors
    /// As [`Self::hear`].
    pub async fn trace(&self, sound: &Sound, reach: usize) -> Result<Vec<Tap>, RuntimeError> {
        let (mut list, inputs, frames) = self.prepare(sound.pieces()?[0], reach);
        let values = keep_tapped(&mut list.graph);
        let names: Vec<_> = values.iter().map(|value| list.graph.info(*value).clone()).collect();
        let data = self.run(list, inputs, (frames, &values)).await?;
        Ok(names.iter().zip(data).map(|(info, data)| tap(info, data)).collect())
    }

    /// The list for a piece, what the host writes, and how many frames there are.
    fn prepare(&self, piece: &[f32], reach: usize) -> (AudioTower, Inputs, usize) {
        let features = features(piece);
        let list = tower(&self.config, &self.catalog, &self.clamps, features.frames, reach);
        let inputs = vec![
            (AudioInputs::FEATURES, features.values),
            (AudioInputs::DISTANCES, distance_rows(reach, self.config.width)),
        ];
        (list, inputs, features.frames)
    }

    async fn run(
        &self,
        list: AudioTower,
        inputs: Inputs,
        wanted: (usize, &[Value]),
    ) -> Result<Vec<Data>, RuntimeError> {
        run(list.graph, &self.weights, &self.device, inputs, wanted).await
    }
}
