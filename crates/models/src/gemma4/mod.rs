//! What Gemma 4 has besides its text decoder: vision and audio encoders, the drafter and the block diffusion model.

pub mod assistant;
pub mod audio;
mod clamps;
pub mod diffusion;
pub mod vision;

pub use clamps::Clamps;
