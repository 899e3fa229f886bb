//! Block diffusion: DiffusionGemma denoises blocks of tokens step by step.
//! A step runs on the device and returns its mean entropy and the number of changed tokens. The most likely tokens are read back when a
//! block is done, or after every step if [`DenoiseOptions::watch`] is set.

mod model;
mod random;
mod session;
mod write;

use rullama_models::gemma4::diffusion::DiffusionDefaults;

pub use model::Denoiser;
pub use session::Denoising;
pub use write::{DEFAULT_BLOCKS, WriteOptions, Writing, Written};

/// How a canvas is denoised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DenoiseOptions {
    /// Steps, bounds and temperatures.
    pub schedule: DiffusionDefaults,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Whether each step returns its most likely tokens, at the cost of a readback.
    pub watch: bool,
}

/// Result of one denoising step.
#[derive(Debug, Clone, PartialEq)]
pub struct Denoised {
    /// Step number, from 1.
    pub step: usize,
    /// Mean entropy of the canvas positions, in nats.
    pub entropy: f32,
    /// Positions whose most likely token changed.
    pub changed: usize,
    /// Positions that kept their sampled token.
    pub accepted: usize,
    /// The most likely tokens; empty without [`DenoiseOptions::watch`].
    pub tokens: Vec<u32>,
    /// Which positions keep them; the others get noise for the next step. Empty without [`DenoiseOptions::watch`].
    pub kept: Vec<bool>,
}

/// A denoised block.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// All tokens of the block.
    pub tokens: Vec<u32>,
    /// Denoising steps.
    pub steps: usize,
}

/// Logits and entropies of one step, for comparison with other implementations.
#[derive(Debug, Clone, PartialEq)]
pub struct CanvasTrace {
    /// Logits of every position.
    pub logits: Vec<f32>,
    /// Entropy of every position.
    pub entropy: Vec<f32>,
    /// The most likely tokens.
    pub best: Vec<u32>,
    /// The canvas after the step.
    pub canvas: Vec<u32>,
    /// Mean entropy, changed tokens, accepted positions.
    pub stats: [f32; 3],
}

/// Inputs of one denoising step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepInputs {
    /// The temperature.
    pub temperature: f32,
    /// The entropy bound.
    pub bound: f32,
    /// Uniform random values in [0, 1) for sampling, one per position.
    pub uniform: Vec<f32>,
    /// Random tokens for positions that are not accepted.
    pub noise: Vec<u32>,
}
