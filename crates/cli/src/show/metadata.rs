//! Metadata values as text and JSON; of long arrays only type and length.

use rullama_gguf::Value;
use serde_json::{Value as Json, json};

use crate::output::safe;

/// Arrays up to this length are always printed.
const SHORT: usize = 64;
/// Strings up to this length are printed whole in the table.
const LINE: usize = 100;

/// A value in a table.
pub(super) fn text(value: &Value, full: bool) -> String {
    let text = match json(value, full) {
        Json::String(text) => safe(&text),
        Json::Object(_) => value.kind().to_string() + &length(value),
        other => safe(&other.to_string()),
    };
    if full || text.chars().count() <= LINE {
        return text;
    }
    text.chars().take(LINE).chain("…".chars()).collect()
}

fn length(value: &Value) -> String {
    match value {
        Value::Array(array) => format!(" × {}", array.len()),
        _ => String::new(),
    }
}

/// A value as JSON; a long array becomes `{"type":…,"count":…}` unless `full`.
pub(super) fn json(value: &Value, full: bool) -> Json {
    match value {
        Value::Array(array) if !full && array.len() > SHORT => {
            json!({ "type": array.element_type().to_string(), "count": array.len() })
        }
        _ => serde_json::from_str(&value.json()).unwrap_or_default(),
    }
}
