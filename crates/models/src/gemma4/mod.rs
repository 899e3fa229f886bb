//! The Gemma 4 text decoder: E2B, E4B, 12B, 31B and the mixture of experts 26B-A4B, from one definition.

pub mod assistant;
mod attention;
pub mod audio;
mod clamps;
pub(crate) mod config;
mod decoder;
pub mod diffusion;
mod encoder;
pub(crate) mod expected;
mod feed_forward;
mod per_layer;
mod pool;
mod segment;
mod train;
pub mod vision;

pub use clamps::Clamps;
pub use config::{Config, Experts, Kind, Layer, PerLayer, Rope};
pub use decoder::{Decoder, Inputs, Pass, PassInput, PassOutput, adapted_decoder, decoder};
pub use encoder::EncoderGraph;
pub use expected::{MATRICES, ROPE_FACTORS, ROUTED};
pub use pool::{PoolPages, PoolShape};
pub use segment::{ExpertGraph, HostExperts, Segment, crosses_cut, expert_graph};
pub use train::{TrainGraph, TrainPass, gradient_of, train_graph, trainable};
