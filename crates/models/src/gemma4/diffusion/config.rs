//! Configuration of a block diffusion model, from a file's keys.

use rullama_gguf::{Gguf, Optional};

use crate::{
    decoder::{Config, expected::List},
    error::ModelError,
    family::{GEMMA4, read_gemma4},
    keys::Keys,
    tensors::Expected,
};

const ARCHITECTURE: &str = "diffusion-gemma";
const GATE: &str = "self_cond_gate.weight";
const WIDTH: &str = "embedding_length";
const SELF: &str = "embedding_length and the other self-conditioning tensors";

/// Configuration of a block diffusion model.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffusionConfig {
    /// The decoder for denoising.
    pub decoder: Config,
    /// The decoder for prompts: the same weights with other layer scales.
    pub encoder: Config,
    /// Tokens per canvas.
    pub canvas: usize,
    /// Inner width of the self-conditioning MLP.
    pub inner: usize,
    /// Sampling defaults of the file.
    pub defaults: DiffusionDefaults,
}

/// Default sampling parameters of a canvas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiffusionDefaults {
    /// Maximum denoising steps.
    pub steps: usize,
    /// Temperatures of the last and the first step.
    pub temperature: (f32, f32),
    /// Bound of the summed entropy of accepted positions, without the last of them.
    pub entropy_bound: f32,
    /// Mean entropy below which denoising may stop.
    pub confidence: f32,
    /// Steps without a change of the most likely tokens before denoising stops.
    pub stability: usize,
}

impl DiffusionConfig {
    /// Whether a file holds a block diffusion model.
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
        let decoder = read_gemma4(&GEMMA4, &Keys { gguf, prefix: ARCHITECTURE })?;
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

    /// All tensors the model may use.
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
