//! Block diffusion: DiffusionGemma denoises blocks of tokens step by step.
//!
//! A step stays on the device: what comes back is the entropy and how many tokens changed. The likeliest tokens are
//! read when a block is done, or when they are shown.

mod model;
mod random;
mod session;
mod write;

use rullama_models::gemma4::diffusion::DiffusionDefaults;

pub use model::Denoiser;
pub use session::Denoising;
pub use write::{USUAL_BLOCKS, WriteOptions, Writing, Written};

/// How a canvas is denoised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DenoiseOptions {
    /// Steps, bounds and temperatures.
    pub schedule: DiffusionDefaults,
    /// Start of the random numbers.
    pub seed: u64,
    /// Whether each step's likeliest tokens are told, which takes more reading.
    pub watch: bool,
}

/// A step that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Denoised {
    /// Its number, from 1.
    pub step: usize,
    /// Mean entropy of the places, in nats.
    pub entropy: f32,
    /// Places whose likeliest token changed.
    pub changed: usize,
    /// Places that kept what was drawn.
    pub accepted: usize,
    /// The likeliest tokens, for those who watch.
    pub tokens: Vec<u32>,
    /// Which places keep them: the others get noise for the next step. For those who watch.
    pub kept: Vec<bool>,
}

/// A block that was denoised.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// All its tokens.
    pub tokens: Vec<u32>,
    /// Steps it took.
    pub steps: usize,
}

/// Logits and entropies of one step, for comparison with other implementations.
#[derive(Debug, Clone, PartialEq)]
pub struct CanvasTrace {
    /// Logits of every place.
    pub logits: Vec<f32>,
    /// Entropies of every place.
    pub entropy: Vec<f32>,
    /// The likeliest tokens.
    pub best: Vec<u32>,
    /// The canvas after the step.
    pub canvas: Vec<u32>,
    /// Mean entropy, changes, accepted places.
    pub numbers: [f32; 3],
}

/// What one step is told.
#[derive(Debug, Clone, PartialEq)]
pub struct StepInputs {
    /// The temperature.
    pub temperature: f32,
    /// The entropy bound.
    pub bound: f32,
    /// Numbers in [0, 1) that draw, one for each place.
    pub uniform: Vec<f32>,
    /// Tokens for places that are not accepted.
    pub noise: Vec<u32>,
}
