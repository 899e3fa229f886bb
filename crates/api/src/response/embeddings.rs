//! Embedding responses.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::EmbeddingEncoding;
use crate::environment::nanoseconds;

/// The response of `/api/embed`; all fields are always present.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OllamaEmbeddings {
    /// The model.
    pub model: String,
    /// One vector per text.
    pub embeddings: Vec<Vec<f32>>,
    /// Total nanoseconds.
    pub total_duration: u64,
    /// Nanoseconds of loading the model.
    pub load_duration: u64,
    /// Tokens of all texts.
    pub prompt_eval_count: u64,
}

impl OllamaEmbeddings {
    /// A response.
    pub fn new(
        model: impl Into<String>,
        embeddings: Vec<Vec<f32>>,
        prompt_tokens: u64,
        load: Duration,
        total: Duration,
    ) -> Self {
        Self {
            model: model.into(),
            embeddings,
            total_duration: nanoseconds(total),
            load_duration: nanoseconds(load),
            prompt_eval_count: prompt_tokens,
        }
    }
}

/// The response of `/api/embeddings`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OllamaEmbedding {
    /// The vector; empty for an empty prompt.
    pub embedding: Vec<f32>,
}

/// The response of `/v1/embeddings`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpenAiEmbeddings {
    object: &'static str,
    data: Vec<Entry>,
    model: String,
    usage: EmbeddingUsage,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Entry {
    object: &'static str,
    index: usize,
    embedding: Vector,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum Vector {
    Numbers(Vec<f32>),
    Base64(String),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct EmbeddingUsage {
    prompt_tokens: u64,
    total_tokens: u64,
}

impl OpenAiEmbeddings {
    /// A response.
    pub fn new(
        model: impl Into<String>,
        embeddings: Vec<Vec<f32>>,
        encoding: EmbeddingEncoding,
        prompt_tokens: u64,
    ) -> Self {
        let entry = |(index, vector): (usize, Vec<f32>)| {
            let embedding = match encoding {
                EmbeddingEncoding::Float => Vector::Numbers(vector),
                EmbeddingEncoding::Base64 => {
                    let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
                    Vector::Base64(STANDARD.encode(bytes))
                }
            };
            Entry { object: "embedding", index, embedding }
        };
        Self {
            object: "list",
            data: embeddings.into_iter().enumerate().map(entry).collect(),
            model: model.into(),
            usage: EmbeddingUsage { prompt_tokens, total_tokens: prompt_tokens },
        }
    }
}
