//! EmbeddingGemma: texts become vectors. The first generation is a Gemma 3 that looks both ways; the second has the layers of Gemma 4.

mod config;
mod graph;

pub use config::{EmbeddingConfig, EmbeddingLayer, Pooling};
pub use graph::{Embedding, EmbeddingInputs, embedding};
