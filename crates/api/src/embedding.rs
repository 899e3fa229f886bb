//! Embedding requests of all APIs.

use crate::{Dialect, KeepAlive, Options, PromptText};

/// A request to embed texts.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingRequest {
    /// The API it came through.
    pub dialect: Dialect,
    /// The model, as the client wrote it.
    pub model: String,
    /// The texts; only Ollama's requests may have none.
    pub input: Vec<PromptText>,
    /// Whether texts longer than the context are truncated instead of rejected.
    pub truncate: bool,
    /// Whether vectors are scaled to length 1.
    pub normalize: bool,
    /// How many dimensions to keep; the shortened vector is normalised again.
    pub dimensions: Option<u32>,
    /// The encoding of the vectors.
    pub encoding: EmbeddingEncoding,
    /// Load options.
    pub options: Options,
    /// How long the model stays loaded.
    pub keep_alive: Option<KeepAlive>,
}

/// The encoding of the vectors in the response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EmbeddingEncoding {
    /// Arrays of numbers.
    #[default]
    Float,
    /// Base64 of little-endian f32.
    Base64,
}
