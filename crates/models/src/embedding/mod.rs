//! EmbeddingGemma: texts become vectors. The first generation is a Gemma 3 that looks both ways; the second has the layers of Gemma 4.

mod config;
mod list;

pub use config::{EmbeddingConfig, EmbeddingLayer, Pooling};
pub use list::{Embedding, EmbeddingInputs, embedding};
