//! Models as Ollama lists them.

use rullama_store::ConfigBlob;
use serde::Serialize;

use crate::facts::Facts;

/// One model of `GET /api/tags`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Tag {
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) modified_at: Option<String>,
    pub(crate) size: u64,
    pub(crate) digest: String,
    pub(crate) details: Details,
    pub(crate) capabilities: Vec<&'static str>,
}

/// What Ollama tells about a model beside its name and size.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Details {
    parent_model: &'static str,
    format: &'static str,
    family: String,
    families: Vec<String>,
    parameter_size: String,
    quantization_level: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding_length: Option<u64>,
}

impl Details {
    pub(crate) fn new(facts: &Facts, config: &ConfigBlob) -> Self {
        let family = facts.architecture.clone();
        let families = if config.model_families.is_empty() {
            vec![family.clone()]
        } else {
            config.model_families.clone()
        };
        Self {
            parent_model: "",
            format: "gguf",
            family,
            families,
            parameter_size: config.model_type.clone().unwrap_or_else(|| count(facts.parameters)),
            quantization_level: config.file_type.clone().unwrap_or_default(),
            context_length: facts.context_length,
            embedding_length: facts.embedding_length,
        }
    }
}

/// What a model can do; towers may be inside the file or files of their own.
pub(crate) fn capabilities(facts: &Facts, has_projector: bool) -> Vec<&'static str> {
    let all = [
        ("completion", true),
        ("vision", facts.vision || has_projector),
        ("audio", facts.audio),
        ("tools", true),
        ("thinking", true),
    ];
    all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}

/// Parameters as people say them.
fn count(parameters: u64) -> String {
    match parameters {
        1_000_000_000.. => format!("{:.1}B", parameters as f64 / 1e9),
        1_000_000.. => format!("{:.1}M", parameters as f64 / 1e6),
        _ => format!("{:.1}K", parameters as f64 / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn counts() {
        for (parameters, text) in
            [(0, "0.0K"), (12_345, "12.3K"), (4_567_890, "4.6M"), (5_100_000_000, "5.1B")]
        {
            assert_eq!(count(parameters), text);
        }
    }
}
