//! The vision tower: patches of a picture become soft tokens in the decoder's space.

mod config;
mod tower;

pub use config::VisionConfig;
pub use tower::{Grid, Tower, VisionInputs, rope, tower};
