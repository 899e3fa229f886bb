//! Audio encoders: audio clips to soft tokens, with a tower or directly.

mod config;
mod direct;
mod tower;

pub use config::{AudioConfig, Names};
pub use direct::{DirectAudio, direct};
pub use tower::{AudioInputs, distance_rows, tower};
