//! Metadata values as text and JSON; of long arrays only type and length.

use rullama_gguf::{Array, Value};
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
        Value::U8(n) => json!(n),
        Value::I8(n) => json!(n),
        Value::U16(n) => json!(n),
        Value::I16(n) => json!(n),
        Value::U32(n) => json!(n),
        Value::I32(n) => json!(n),
        Value::U64(n) => json!(n),
        Value::I64(n) => json!(n),
        Value::F32(n) => float(*n),
        Value::F64(n) => json!(n),
        Value::Bool(b) => json!(b),
        Value::String(text) => json!(text),
        Value::Array(array) if full || array.len() <= SHORT => elements(array),
        Value::Array(array) => {
            json!({ "type": array.element_type().to_string(), "count": array.len() })
        }
    }
}

/// A float as its own shortest spelling: 0.95, not 0.949999988079071.
fn float(n: f32) -> Json {
    n.to_string().parse::<f64>().map_or(Json::Null, |n| json!(n))
}

fn elements(array: &Array) -> Json {
    match array {
        Array::U8(v) => json!(v),
        Array::I8(v) => json!(v),
        Array::U16(v) => json!(v),
        Array::I16(v) => json!(v),
        Array::U32(v) => json!(v),
        Array::I32(v) => json!(v),
        Array::U64(v) => json!(v),
        Array::I64(v) => json!(v),
        Array::F32(v) => v.iter().map(|n| float(*n)).collect(),
        Array::F64(v) => json!(v),
        Array::Bool(v) => json!(v),
        Array::String(v) => v.iter().collect(),
    }
}
