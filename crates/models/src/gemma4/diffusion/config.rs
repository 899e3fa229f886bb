//! What a file says about its diffusion.

use rullama_gguf::{Gguf, Optional};

use super::super::{Config, expected::List};
use crate::{error::ModelError, keys::Keys, tensors::Expected};

const ARCHITECTURE: &str = "diffusion-gemma";
const GATE: &str = "self_cond_gate.weight";
const WIDTH: &str = "embedding_length";
const SELF: &str = "embedding_length and the other self-conditioning tensors";

/// A model that denoises.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffusionConfig {
    /// The decoder as it denoises.
    pub decoder: Config,
    /// The decoder as it reads prompts: the same but for the scales of its layers.
    pub encoder: Config,
    /// Tokens of a canvas.
    pub canvas: usize,
    /// Numbers inside the self-conditioning part.
    pub inner: usize,
    /// How the file wants to be sampled.
    pub defaults: DiffusionDefaults,
}

/// How a canvas settles, as files may say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiffusionDefaults {
    /// Steps, at most.
    pub steps: usize,
    /// Temperature of the last step, and of the first.
    pub temperature: (f32, f32),
    /// Entropy that accepted places may have together, but for the last of them.
    pub entropy_bound: f32,
    /// Mean entropy below which a canvas may end.
    pub confidence: f32,
    /// Steps for which the likeliest tokens must not change before it ends.
    pub stability: usize,
}

impl DiffusionConfig {
    /// Whether a file says that it holds such a model.
    pub fn is_diffusion(gguf: &Gguf) -> bool {
        gguf.str("general.architecture").is_ok_and(|name| name == ARCHITECTURE)
    }

    /// Reads and checks the keys of a file.
    ///
    /// # Errors
    /// If the file holds another kind of model, or keys are missing or impossible.
    pub fn of_file(gguf: &Gguf) -> Result<Self, ModelError> {
        let found = gguf.str("general.architecture")?;
        if found != ARCHITECTURE {
            let (file, found) = (gguf.name().into(), found.into());
            return Err(ModelError::Architecture { file, found });
        }
        let decoder = Config::of_keys(&Keys { gguf, prefix: ARCHITECTURE })?;
        let keys = Keys { gguf, prefix: "diffusion" };
        let canvas = keys.positive("canvas_length")?;
        if canvas > 4096 {
            return Err(keys.bad("canvas_length", &canvas, "too long, the file is damaged"));
        }
        let inner = gguf.tensor(GATE).and_then(|tensor| usize::try_from(tensor.rows()).ok());
        let missing = || ModelError::MissingTensors { names: vec![GATE.into()] };
        let temperature = (keys.float("eb_t_min", Some(0.4))?, keys.float("eb_t_max", Some(0.8))?);
        let stability = gguf.u32("diffusion.eb_stability_threshold").optional()?;
        Ok(Self {
            encoder: Config { layer_scale: "enc_layer_output_scale", ..decoder.clone() },
            decoder,
            canvas,
            inner: inner.ok_or_else(missing)?,
            defaults: DiffusionDefaults {
                steps: keys.optional("eb_max_steps")?.unwrap_or(48).max(1),
                temperature,
                entropy_bound: keys.float("eb_entropy_bound", Some(0.1))?,
                confidence: keys.float("eb_confidence_threshold", Some(0.005))?,
                stability: stability.map_or(1, |steps| steps as usize),
            },
        })
    }

    /// All tensors it may use.
    pub fn expected(&self) -> Vec<Expected> {
        let (d, inner) = (self.decoder.width, self.inner);
        let mut list = List(self.decoder.expected());
        list.add("self_cond_pre_norm.weight", &[d], WIDTH);
        list.add(GATE, &[inner, d], SELF);
        list.add("self_cond_up.weight", &[inner, d], SELF);
        list.add("self_cond_down.weight", &[d, inner], SELF);
        for layer in 0..self.decoder.layers.len() {
            list.may(&format!("blk.{layer}.enc_layer_output_scale.weight"), &[1], WIDTH);
        }
        list.0
    }
}
