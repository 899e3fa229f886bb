//! A request to embed, whichever API it came by.

use crate::{Dialect, KeepAlive, Options, PromptText};

/// A request to embed texts.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingRequest {
    /// Whose API it came by.
    pub dialect: Dialect,
    /// The model, as the client wrote it.
    pub model: String,
    /// The texts; only Ollama's requests may have none.
    pub input: Vec<PromptText>,
    /// Whether texts beyond the context are cut instead of refused.
    pub truncate: bool,
    /// Whether vectors are scaled to length 1.
    pub normalize: bool,
    /// How many dimensions to keep; what is left is scaled again.
    pub dimensions: Option<u32>,
    /// How the vectors are written.
    pub encoding: EmbeddingEncoding,
    /// Load options.
    pub options: Options,
    /// How long the model stays loaded.
    pub keep_alive: Option<KeepAlive>,
}

/// How vectors are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EmbeddingEncoding {
    /// As lists of numbers.
    #[default]
    Float,
    /// As base64 of little-endian f32.
    Base64,
}
