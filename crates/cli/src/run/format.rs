//! `--format`: what replies are constrained to.

use rullama::Format;

/// Reads `json`, a schema, or the name of a file with one.
pub(super) fn parse(text: &str) -> Result<Format, String> {
    let text = text.trim();
    if text == "json" {
        return Ok(Format::Json);
    }
    if text.starts_with('{') {
        return schema(text).map_err(|error| format!("not valid JSON: {error}"));
    }
    let file = std::fs::read_to_string(text).map_err(|error| {
        format!("give `json`, a JSON schema, or a file with one; {text:?} cannot be read: {error}")
    })?;
    schema(&file).map_err(|error| format!("{text} is not valid JSON: {error}"))
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
        assert_eq!(parse("json"), Ok(Format::Json));
        let schema = Format::Schema(json!({ "type": "string" }));
        assert_eq!(parse(r#" {"type":"string"}"#), Ok(schema.clone()));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("schema.json");
        std::fs::write(&path, r#"{"type":"string"}"#).expect("written");
        assert_eq!(parse(path.to_str().expect("a path")), Ok(schema));
        for (text, part) in [
            ("{\"type\"", "not valid JSON"),
            ("xml", "give `json`"),
            ("no/such.json", "no/such.json"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }
}
