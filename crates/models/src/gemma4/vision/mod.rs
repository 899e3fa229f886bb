//! Vision: patches of an image become soft tokens in the decoder's space, through a tower or directly.

mod config;
mod direct;
mod tower;

pub use config::VisionConfig;
pub use direct::{DirectVision, direct};
pub use tower::{Grid, VisionInputs, rope, tower};
