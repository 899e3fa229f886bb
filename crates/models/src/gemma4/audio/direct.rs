//! Hearing without a tower, as the 12B model does: frames of samples, as they are, go through a norm and one product.

use rullama_engine::graph::Type;
use rullama_gguf::{Gguf, Optional};

use super::{
    super::{
        EncoderGraph,
        expected::{List, size},
    },
    AudioInputs,
};
use crate::{
    build::Build,
    error::ModelError,
    tensors::{Catalog, Expected},
};

const KIND: &str = "gemma4ua";
const PROJECTOR: &str = "mm.a.input_projection";
const EPS: f32 = 1e-6;

/// What a file says about hearing without a tower.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectAudio {
    /// Samples of a frame.
    pub frame: usize,
    /// Numbers of a soft token.
    pub out: usize,
}

impl DirectAudio {
    /// Reads a file; `None` if it hears in another way or not at all.
    ///
    /// # Errors
    /// If the product is missing or impossible.
    pub fn of_file(gguf: &Gguf) -> Result<Option<Self>, ModelError> {
        let weight = format!("{PROJECTOR}.weight");
        let said = gguf.str("clip.audio.projector_type").optional()? == Some(KIND);
        // Towers have convolutions before everything else.
        let bare = gguf.tensor(&weight).is_some() && gguf.tensor("a.conv1d.0.weight").is_none();
        if !said && !bare {
            return Ok(None);
        }
        Ok(Some(Self { frame: size(gguf, &weight, 0)?, out: size(gguf, &weight, 1)? }))
    }

    /// All tensors that are used.
    pub fn expected(&self) -> Vec<Expected> {
        let mut list = List(Vec::new());
        list.add(&format!("{PROJECTOR}.weight"), &[self.out, self.frame], "the tensor itself");
        list.0
    }
}

/// Writes the graph for so many frames.
///
/// # Panics
/// If the catalogue is not of this configuration.
pub fn direct(config: &DirectAudio, catalog: &Catalog, frames: usize) -> EncoderGraph {
    let mut b = Build::new(catalog, EPS, false);
    let x = b.input(AudioInputs::FEATURES, Type::f32([frames, config.frame]));
    let x = b.graph.rms_norm(x, None, EPS);
    let result = b.linear(x, PROJECTOR);
    b.tap(result, "embeddings");
    b.graph.keep(result);
    EncoderGraph { graph: b.graph, result }
}
