//! The text decoder of all families: one builder writes their graphs from a [`Config`]. What sets a family apart is in [`crate::family`].

mod attention;
mod config;
pub(crate) mod expected;
mod feed_forward;
pub(crate) mod graph;
mod per_layer;
mod pool;
mod segment;
mod train;

pub use attention::kv_caches;
pub use config::{Config, Experts, Kind, Layer, PerLayer, Rope};
pub use expected::{MATRICES, ROPE_FACTORS, ROUTED};
pub use graph::{Decoder, Inputs, Pass, PassInput, PassOutput, adapted_decoder, decoder};
pub use pool::{PoolPages, PoolShape};
pub use segment::{ExpertGraph, HostExperts, Segment, crosses_cut, expert_graph};
pub use train::{TrainGraph, TrainPass, gradient_of, train_graph, trainable};
