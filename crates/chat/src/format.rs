//! Values in Gemma 4's notation of declarations, calls and responses: bare keys, strings between `<|"|>`, no escapes.

use serde_json::{Map, Value};

use crate::Prompt;
use crate::markers::QUOTE;
use crate::python;

/// How the keys of objects are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Bare: in arguments and responses.
    Bare,
    /// Quoted like strings: in schemas.
    Quoted,
}

/// The entries in the order of Jinja's `dictsort`: by lower-cased key, stable.
pub(crate) fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut pairs: Vec<_> = map.iter().collect();
    pairs.sort_by_cached_key(|(key, _)| key.to_lowercase());
    pairs
}

/// Writes `key:value` pairs, sorted, with bare keys.
pub(crate) fn pairs(out: &mut Prompt, map: &Map<String, Value>) {
    for (i, (key, item)) in sorted(map).into_iter().enumerate() {
        comma(out, i);
        out.untrusted(key);
        out.trusted(":");
        value(out, item, Keys::Bare);
    }
}

/// Writes any value.
pub(crate) fn value(out: &mut Prompt, value: &Value, keys: Keys) {
    match value {
        Value::Null => out.trusted("null"),
        Value::Bool(true) => out.trusted("true"),
        Value::Bool(false) => out.trusted("false"),
        Value::Number(n) => out.trusted(&python::number(n)),
        Value::String(text) => quoted(out, text),
        Value::Array(items) => list(out, items, keys),
        Value::Object(map) => object(out, map, keys),
    }
}

/// Writes a string between quote markers.
pub(crate) fn quoted(out: &mut Prompt, text: &str) {
    out.trusted(QUOTE);
    out.untrusted(text);
    out.trusted(QUOTE);
}

/// Writes the comma before all elements but the first.
pub(crate) fn comma(out: &mut Prompt, index: usize) {
    if index > 0 {
        out.trusted(",");
    }
}

fn list(out: &mut Prompt, items: &[Value], keys: Keys) {
    out.trusted("[");
    for (i, item) in items.iter().enumerate() {
        comma(out, i);
        value(out, item, keys);
    }
    out.trusted("]");
}

fn object(out: &mut Prompt, map: &Map<String, Value>, keys: Keys) {
    out.trusted("{");
    for (i, (key, item)) in sorted(map).into_iter().enumerate() {
        comma(out, i);
        match keys {
            Keys::Bare => out.untrusted(key),
            Keys::Quoted => quoted(out, key),
        }
        out.trusted(":");
        value(out, item, keys);
    }
    out.trusted("}");
}
