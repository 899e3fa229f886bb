//! The vision tower: patches of a picture become soft tokens in the decoder's space.

mod clamps;
mod config;
mod tower;

pub use clamps::{Clamps, LINEARS};
pub use config::VisionConfig;
pub use tower::{Grid, Tower, VisionInputs, rope, tower};
