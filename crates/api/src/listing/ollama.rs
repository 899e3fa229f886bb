//! Ollama's `version`, `tags`, `show` and `ps`.

use rullama_chat::Message;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Capability, Timestamp};

/// The response of `/api/version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Version {
    version: &'static str,
}

impl Default for Version {
    /// The Ollama release whose API this implements. Clients reject older ones and parse plain digits only.
    fn default() -> Self {
        Self { version: "0.13.5" }
    }
}

/// The response of `/api/tags`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TagList {
    models: Vec<ModelEntry>,
}

impl TagList {
    /// The list, newest first.
    pub fn new(mut models: Vec<ModelEntry>) -> Self {
        models.sort_by_key(|model| std::cmp::Reverse(model.modified_at));
        Self { models }
    }
}

/// One model of `/api/tags`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelEntry {
    /// The short name, with tag.
    pub name: String,
    /// Same as `name`.
    pub model: String,
    /// When its manifest was written.
    pub modified_at: Timestamp,
    /// Total bytes of layers and configuration.
    pub size: u64,
    /// SHA-256 of its manifest.
    pub digest: String,
    /// Format, architecture and size.
    pub details: Details,
    /// Its capabilities.
    pub capabilities: Vec<Capability>,
}

/// Format, architecture and size of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Details {
    /// The model it was derived from.
    pub parent_model: String,
    /// `gguf`
    pub format: String,
    /// The architecture.
    pub family: String,
    /// All architectures, projectors included.
    pub families: Vec<String>,
    /// Parameter count for display, such as `5.1B`.
    pub parameter_size: String,
    /// Quantisation, such as `Q4_K_M`.
    pub quantization_level: String,
    /// Trained context length in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_length: Option<u64>,
    /// Embedding length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_length: Option<u64>,
}

/// The response of `/api/show`. Empty fields are omitted, except `model_info`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ShowReply {
    /// License texts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub license: String,
    /// A Modelfile that recreates this model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub modelfile: String,
    /// Parameters, one per line: [`parameters_text`](super::parameters_text).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub parameters: String,
    /// The chat template.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// The system text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// Name of the prompt renderer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub renderer: String,
    /// Name of the output parser.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub parser: String,
    /// Format, architecture and size.
    pub details: Details,
    /// Messages that precede every conversation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// The file's metadata without name and template; long arrays are empty unless the request is verbose.
    pub model_info: Map<String, Value>,
    /// The metadata of the projector's file.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub projector_info: Map<String, Value>,
    /// The file's tensors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<TensorEntry>,
    /// Its capabilities.
    pub capabilities: Vec<Capability>,
    /// When its manifest was written.
    pub modified_at: Timestamp,
    /// The minimum Ollama release it requires.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requires: String,
}

/// One tensor of `/api/show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TensorEntry {
    /// Its name.
    pub name: String,
    /// Its format.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its dimensions.
    pub shape: Vec<u64>,
}

/// The response of `/api/ps`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ProcessList {
    models: Vec<RunningModel>,
}

impl ProcessList {
    /// The list, latest expiry first.
    pub fn new(mut models: Vec<RunningModel>) -> Self {
        models.sort_by_key(|model| std::cmp::Reverse(model.expires_at));
        Self { models }
    }
}

/// One model of `/api/ps`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunningModel {
    /// The short name, with tag.
    pub name: String,
    /// Same as `name`.
    pub model: String,
    /// Bytes in memory.
    pub size: u64,
    /// SHA-256 of its manifest.
    pub digest: String,
    /// Format, architecture and size.
    pub details: Details,
    /// When it will be unloaded; [`Timestamp::FAR_FUTURE`]: never.
    pub expires_at: Timestamp,
    /// Bytes in GPU memory.
    pub size_vram: u64,
    /// Context length it was loaded with.
    pub context_length: u64,
}
