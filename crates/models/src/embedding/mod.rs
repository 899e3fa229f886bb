//! EmbeddingGemma: text embeddings. The first generation is a Gemma 3 with bidirectional attention; the second has Gemma 4 layers.

mod config;
mod graph;

pub use config::{EmbeddingConfig, EmbeddingLayer, Pooling};
pub use graph::{Embedding, EmbeddingInputs, embedding};
