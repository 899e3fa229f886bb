//! Gemma 3's vision encoder: SigLIP over the patches of an image of a fixed size, average pooling, and a projection to soft tokens.

mod config;
mod graph;

pub use config::SiglipConfig;
pub use graph::{encoder, score_scale};
