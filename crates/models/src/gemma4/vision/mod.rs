//! Vision encoders: image patches to soft tokens, with a tower or directly.

mod config;
mod direct;
mod tower;

pub use config::VisionConfig;
pub use direct::{DirectVision, direct};
pub use tower::{Grid, VisionInputs, rope, tower};
