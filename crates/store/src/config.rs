//! The config blob: a model's properties, which its manifest points to.

use serde_json::{Map, Value};

/// Properties of a model. Fields that are missing or of another type are empty.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ConfigBlob {
    /// `gguf` for every model we can read.
    pub model_format: Option<String>,
    /// Family of architectures.
    pub model_family: Option<String>,
    /// All families involved, projectors included.
    pub model_families: Vec<String>,
    /// Parameter count as text, such as `5.1B`.
    pub model_type: Option<String>,
    /// Quantisation, such as `Q4_K_M`.
    pub file_type: Option<String>,
    /// Name of a built-in prompt renderer.
    pub renderer: Option<String>,
    /// Name of a built-in output parser.
    pub parser: Option<String>,
    /// Minimum version of Ollama that can run it.
    pub requires: Option<String>,
    /// Processor architecture it was created on.
    pub architecture: Option<String>,
    /// Operating system it was created on.
    pub os: Option<String>,
    /// Properties of the drafter.
    pub draft: Option<DraftConfig>,
    /// Where a remote model runs.
    pub remote_host: Option<String>,
    /// A remote model's name on that host.
    pub remote_model: Option<String>,
}

/// Properties of a model's drafter.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct DraftConfig {
    /// Format of its weights.
    pub model_format: Option<String>,
    /// Its architecture.
    pub architecture: Option<String>,
    /// Prefix of its tensor names.
    pub tensor_prefix: Option<String>,
    /// Its own configuration, unparsed.
    pub config: Option<Value>,
}

impl ConfigBlob {
    pub(crate) fn from_object(object: &Map<String, Value>) -> Self {
        Self {
            model_format: text(object, "model_format"),
            model_family: text(object, "model_family"),
            model_families: texts(object, "model_families"),
            model_type: text(object, "model_type"),
            file_type: text(object, "file_type"),
            renderer: text(object, "renderer"),
            parser: text(object, "parser"),
            requires: text(object, "requires"),
            architecture: text(object, "architecture"),
            os: text(object, "os"),
            draft: object.get("draft").and_then(Value::as_object).map(|draft| DraftConfig {
                model_format: text(draft, "model_format"),
                architecture: text(draft, "architecture"),
                tensor_prefix: text(draft, "tensor_prefix"),
                config: draft.get("config").cloned(),
            }),
            remote_host: text(object, "remote_host"),
            remote_model: text(object, "remote_model"),
        }
    }
}

/// A non-empty string.
fn text(object: &Map<String, Value>, field: &str) -> Option<String> {
    object.get(field)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn texts(object: &Map<String, Value>, field: &str) -> Vec<String> {
    let values = object.get(field).and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}
