//! The audio encoder: a conformer, or a single projection.

use std::rc::Rc;

use rullama_engine::{executor::Device, gpu::profile::Table, graph::Cost};
use rullama_gguf::Gguf;
use rullama_media::{
    MediaError,
    audio::{Audio, PIECE, features, frames_of_samples},
};
use rullama_models::{
    Catalog, EncoderGraph, Expected,
    gemma4::{
        Clamps,
        audio::{AudioConfig, AudioInputs, DirectAudio, direct, distance_rows, tower},
    },
};

use super::encoder::{Architecture, Encoder, Input, Inputs, SoftTokens};
use crate::{error::RuntimeError, session::Tap};

/// Rows before it that a row attends to, as trained; some implementations use one fewer.
pub const REACH: usize = 12;

/// Architecture of an audio encoder.
#[derive(Debug)]
enum AudioArchitecture {
    Tower(Box<AudioConfig>, Clamps),
    Direct(DirectAudio),
}

/// Size of a piece of audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PieceSize {
    /// Rows of features or samples.
    rows: usize,
    /// Rows before it that a row attends to.
    reach: usize,
}

/// An audio encoder whose weights are on a device.
#[derive(Debug)]
pub struct AudioEncoder(Encoder<AudioArchitecture>);

impl AudioEncoder {
    /// Loads the audio encoder of a projector file, or of a model file that contains it; `None` if there is none.
    ///
    /// # Errors
    /// If it is broken, its output width differs from the decoder's, or it does not fit the device.
    pub async fn load(
        gguf: Rc<Gguf>,
        device: Device,
        width: usize,
    ) -> Result<Option<Self>, RuntimeError> {
        Ok(Encoder::load(gguf, device, width).await?.map(Self))
    }

    /// Estimated GPU bytes of a file's audio encoder for the longest piece, from its header; 0 if there is none.
    ///
    /// # Errors
    /// If it is broken.
    pub fn memory_of_file(gguf: &Gguf) -> Result<u64, RuntimeError> {
        Encoder::<AudioArchitecture>::memory_of_file(gguf)
    }

    /// Bytes on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.0.gpu_bytes()
    }

    /// The soft tokens of an audio clip: those of its pieces, concatenated.
    ///
    /// # Errors
    /// If the clip is too short, or the device fails.
    pub async fn encode(&self, audio: &Audio, reach: usize) -> Result<SoftTokens, RuntimeError> {
        let architecture = &self.0.architecture;
        let mut values = Vec::new();
        for piece in architecture.pieces(audio)? {
            let (rows, inputs) = architecture.inputs(piece);
            values.extend(self.0.encode(PieceSize { rows, reach }, inputs).await?);
        }
        Ok(SoftTokens { count: values.len() / architecture.out(), values })
    }

    /// Every tapped value for the clip's first piece.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub async fn trace(&self, audio: &Audio, reach: usize) -> Result<Vec<Tap>, RuntimeError> {
        let architecture = &self.0.architecture;
        let (rows, inputs) = architecture.inputs(architecture.pieces(audio)?[0]);
        self.0.trace(PieceSize { rows, reach }, inputs).await
    }

    /// Cost of the clip's first piece, and a profile if the device has timestamps.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub async fn profile(&self, audio: &Audio) -> Result<(Cost, Option<Table>), RuntimeError> {
        let architecture = &self.0.architecture;
        let (rows, _) = architecture.inputs(architecture.pieces(audio)?[0]);
        self.0.profile(PieceSize { rows, reach: REACH }).await
    }
}

impl AudioArchitecture {
    /// Pieces that are encoded separately. Without a conformer, frames are independent: a clip may have any length.
    fn pieces<'a>(&self, audio: &'a Audio) -> Result<Vec<&'a [f32]>, MediaError> {
        match self {
            Self::Tower(..) => audio.pieces(),
            Self::Direct(_) if audio.samples().is_empty() => {
                Err(MediaError::TooShort { samples: 0 })
            }
            Self::Direct(config) => {
                let whole = (PIECE / config.frame).max(1) * config.frame;
                Ok(audio.samples().chunks(whole).collect())
            }
        }
    }

    /// Rows of a piece, and its input.
    fn inputs(&self, piece: &[f32]) -> (usize, Inputs) {
        let (rows, values) = match self {
            Self::Tower(..) => {
                let features = features(piece);
                (features.frames, features.values)
            }
            Self::Direct(config) => {
                let rows = piece.len().div_ceil(config.frame);
                let mut samples = piece.to_vec();
                samples.resize(rows * config.frame, 0.0);
                (rows, samples)
            }
        };
        (rows, vec![(AudioInputs::FEATURES, Input::F32(values))])
    }
}

impl Architecture for AudioArchitecture {
    type Size = PieceSize;
    const PACKED_CLAMPS: Option<&'static str> = None;

    fn of_file(gguf: &Gguf) -> Result<Option<Self>, RuntimeError> {
        if let Some(direct) = DirectAudio::of_file(gguf)? {
            return Ok(Some(Self::Direct(direct)));
        }
        let tower = AudioConfig::of_file(gguf)?;
        Ok(tower.map(|config| Self::Tower(Box::new(config), Clamps::default())))
    }

    fn clamped(&mut self) -> Option<(Vec<String>, &mut Clamps)> {
        match self {
            Self::Tower(config, clamps) => Some((config.clamped_linears(), clamps)),
            Self::Direct(_) => None,
        }
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

    fn smallest(&self) -> PieceSize {
        PieceSize { rows: 1, reach: REACH }
    }

    fn usual(&self) -> PieceSize {
        let rows = match self {
            Self::Tower(..) => frames_of_samples(PIECE),
            Self::Direct(config) => PIECE / config.frame,
        };
        PieceSize { rows, reach: REACH }
    }

    fn graph(&self, catalog: &Catalog, size: PieceSize, _: u64) -> EncoderGraph {
        match self {
            Self::Tower(config, clamps) => tower(config, catalog, clamps, size.rows, size.reach),
            Self::Direct(config) => direct(config, catalog, size.rows),
        }
    }

    fn rows(size: PieceSize) -> usize {
        size.rows
    }

    async fn constants(&self, _: &Gguf, size: PieceSize) -> Result<Inputs, RuntimeError> {
        Ok(match self {
            Self::Tower(config, _) => {
                let distances = distance_rows(size.reach, config.width);
                vec![(AudioInputs::DISTANCES, Input::F32(distances))]
            }
            Self::Direct(_) => Vec::new(),
        })
    }
}
