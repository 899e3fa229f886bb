//! Vision encoders: image patches to soft tokens, with a tower or directly.

mod config;
mod direct;
mod tower;

pub(crate) use config::CHANNELS;
pub use config::VisionConfig;
pub use direct::{DirectVision, direct};
pub(crate) use tower::patches;
pub use tower::{Grid, VisionInputs, rope, tower};
