//! Graph type of the vision and audio encoders.

use rullama_engine::graph::{Graph, Value};

/// The graph of an encoder for inputs of one size.
#[derive(Debug)]
pub struct EncoderGraph {
    /// The graph.
    pub graph: Graph,
    /// Its result, the soft tokens `[n, d]`.
    pub result: Value,
}
