//! llama.cpp's additional responses.

mod metrics;

pub use metrics::Metrics;

use serde::Serialize;
use serde_json::{Map, Value};

/// The response of `/health` when the server is ready; otherwise [`ApiError::Loading`](crate::ApiError::Loading).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    status: &'static str,
}

impl Default for Health {
    fn default() -> Self {
        Self { status: "ok" }
    }
}

/// The response of `/tokenize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tokenized {
    /// The tokens.
    pub tokens: Tokens,
}

/// Tokens with or without their texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Tokens {
    /// Ids only.
    Ids(Vec<u32>),
    /// Ids with texts.
    Pieces(Vec<TokenPiece>),
}

/// A token with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TokenPiece {
    /// The token's id.
    pub id: u32,
    /// Its text.
    pub piece: Piece,
}

/// The text of a token, or its bytes if they are not complete characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Piece {
    /// Complete characters.
    Text(String),
    /// Other bytes.
    Bytes(Vec<u8>),
}

impl From<Vec<u8>> for Piece {
    fn from(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }
}

/// The response of `/detokenize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Detokenized {
    /// The text.
    pub content: String,
}

/// The response of `/apply-template`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppliedTemplate {
    /// The rendered prompt.
    pub prompt: String,
}

/// One adapter of `GET /lora-adapters`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoraAdapter {
    /// Its index.
    pub id: u32,
    /// Its file.
    pub path: String,
    /// Its scale.
    pub scale: f32,
}

/// The response of `/props`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Props {
    /// Default settings of requests.
    pub default_generation_settings: GenerationSettings,
    /// How many requests run concurrently.
    pub total_slots: u32,
    /// The model's file or name.
    pub model_path: String,
    /// The model's chat template.
    pub chat_template: String,
    /// Input modalities other than text.
    pub modalities: Modalities,
    /// Name and version of this program.
    pub build_info: String,
    /// Whether the model is unloaded until the next request.
    pub is_sleeping: bool,
}

/// Context length and sampling options.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GenerationSettings {
    /// Context length in tokens.
    pub n_ctx: u64,
    /// Sampling options.
    pub params: Map<String, Value>,
}

/// Input modalities of a model other than text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Modalities {
    /// Images.
    pub vision: bool,
    /// Audio.
    pub audio: bool,
}

/// One slot of `GET /slots`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slot {
    /// Its index.
    pub id: u32,
    /// The current request; −1 = none.
    pub id_task: i64,
    /// Context length in tokens.
    pub n_ctx: u64,
    /// Whether it is processing a request.
    pub is_processing: bool,
    /// Options of the current request.
    pub params: Map<String, Value>,
    /// Progress of the current request.
    pub next_token: NextToken,
}

/// Progress of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NextToken {
    /// Tokens generated so far.
    pub n_decoded: u64,
    /// Tokens left; −1 = no limit.
    pub n_remain: i64,
    /// Whether another token follows.
    pub has_next_token: bool,
}
