//! The audio tower: log-mel features of a sound become soft tokens in the decoder's space.

mod config;
mod tower;

pub use config::{AudioConfig, Names};
pub use tower::{AudioInputs, AudioTower, distance_rows, tower};
