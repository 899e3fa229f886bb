//! Audio without a tower, as in the 12B model: frames of raw samples, a norm and one matmul.

use rullama_engine::graph::Type;
use rullama_gguf::{Gguf, Optional};

use super::AudioInputs;
use crate::{
    build::Build,
    decoder::expected::{List, size},
    encoder::EncoderGraph,
    error::ModelError,
    tensors::{Catalog, Expected},
};

const KIND: &str = "gemma4ua";
const PROJECTOR: &str = "mm.a.input_projection";
const EPS: f32 = 1e-6;

/// Configuration of an audio encoder without a tower.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectAudio {
    /// Samples per frame.
    pub frame: usize,
    /// Width of a soft token.
    pub out: usize,
}

impl DirectAudio {
    /// Reads a file; `None` if it has a tower or no audio encoder.
    ///
    /// # Errors
    /// If the projection tensor is missing or has an impossible shape.
    pub fn of_file(gguf: &Gguf) -> Result<Option<Self>, ModelError> {
        let weight = format!("{PROJECTOR}.weight");
        let declared = gguf.str("clip.audio.projector_type").optional()? == Some(KIND);
        // Towers start with convolutions.
        let bare = gguf.tensor(&weight).is_some() && gguf.tensor("a.conv1d.0.weight").is_none();
        if !declared && !bare {
            return Ok(None);
        }
        Ok(Some(Self { frame: size(gguf, &weight, 0)?, out: size(gguf, &weight, 1)? }))
    }

    /// All tensors the encoder uses.
    pub fn expected(&self) -> Vec<Expected> {
        let mut list = List(Vec::new());
        list.add(&format!("{PROJECTOR}.weight"), &[self.out, self.frame], "the tensor itself");
        list.0
    }
}

/// Builds the graph for a number of frames.
///
/// # Panics
/// If the catalogue does not match the configuration.
pub fn direct(config: &DirectAudio, catalog: &Catalog, frames: usize) -> EncoderGraph {
    let mut b = Build::new(catalog, EPS, false);
    let x = b.input(AudioInputs::FEATURES, Type::f32([frames, config.frame]));
    let x = b.graph.rms_norm(x, None, EPS);
    let result = b.linear(x, PROJECTOR);
    b.tap(result, "embeddings");
    b.graph.keep(result);
    EncoderGraph { graph: b.graph, result }
}
