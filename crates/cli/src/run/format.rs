//! The form an answer is held to: any JSON object, or what a schema describes.

use rullama_runtime::{RuntimeError, generate::JsonFormat};
use rullama_tokenizer::Tokenizer;
use serde_json::Value;

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Format {
    Json,
    Schema(Value),
}

impl Format {
    /// Reads `json`, a schema, or the name of a file with one.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "json" {
            return Ok(Self::Json);
        }
        if text.starts_with('{') {
            return schema(text).map_err(|error| format!("not valid JSON: {error}"));
        }
        let file = std::fs::read_to_string(text).map_err(|error| {
            format!(
                "give `json`, a JSON schema, or a file with one; {text:?} cannot be read: {error}"
            )
        })?;
        schema(&file).map_err(|error| format!("{text} is not valid JSON: {error}"))
    }

    /// Makes it ready for a model.
    pub(super) fn of_model(&self, tokenizer: &Tokenizer) -> Result<JsonFormat, RuntimeError> {
        Ok(match self {
            Self::Json => JsonFormat::object(tokenizer)?,
            Self::Schema(schema) => JsonFormat::schema(tokenizer, schema.clone())?,
        })
    }
}

fn schema(text: &str) -> Result<Format, serde_json::Error> {
    serde_json::from_str(text).map(Format::Schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_meant() {
        assert_eq!(Format::parse("json"), Ok(Format::Json));
        let schema = Format::Schema(json!({ "type": "string" }));
        assert_eq!(Format::parse(r#" {"type":"string"}"#), Ok(schema.clone()));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("schema.json");
        std::fs::write(&path, r#"{"type":"string"}"#).expect("written");
        assert_eq!(Format::parse(path.to_str().expect("a path")), Ok(schema));
        for (text, part) in [
            ("{\"type\"", "not valid JSON"),
            ("xml", "give `json`"),
            ("no/such.json", "no/such.json"),
        ] {
            let error = Format::parse(text).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }
}
