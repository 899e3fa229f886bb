//! Keywords of JSON schemas, and what they say.

use serde_json::{Map, Value};

/// Keywords that restrict values and cannot be enforced here.
pub(super) const UNSUPPORTED: [&str; 25] = [
    "not",
    "if",
    "then",
    "else",
    "dependencies",
    "dependentSchemas",
    "dependentRequired",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "prefixItems",
    "additionalItems",
    "propertyNames",
    "patternProperties",
    "minProperties",
    "maxProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "$dynamicRef",
    "$recursiveRef",
    "discriminator",
];

/// Keywords that say how large a number may be.
pub(super) const BOUNDS: [&str; 5] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

/// Keywords that say which type a schema without one is about.
pub(super) const TYPES: [(&str, &[&str]); 4] = [
    ("object", &["properties", "required", "additionalProperties"]),
    ("array", &["items", "minItems", "maxItems"]),
    ("string", &["minLength", "maxLength", "pattern", "format"]),
    ("number", &BOUNDS),
];

/// Keys of objects whose properties are not declared.
pub(super) const KEY: &str = "/[A-Za-z_][A-Za-z0-9_-]{0,63}/";

/// A key that can be written without quotes.
pub(super) fn bare(key: &str) -> Result<&str, String> {
    let good = |c: char| c.is_alphanumeric() || "_-. $@/".contains(c);
    if key.is_empty() || key.trim() != key || !key.chars().all(good) {
        return Err(format!("the parameter {key:?} cannot be written in a call of this model"));
    }
    Ok(key)
}

/// The entries as templates write them.
pub(super) fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut pairs: Vec<_> = map.iter().collect();
    pairs.sort_by_cached_key(|(key, _)| key.to_lowercase());
    pairs
}

/// Refuses keywords that restrict values, except for these.
pub(super) fn only(
    keywords: &Map<String, Value>,
    keyword: &str,
    others: &[&str],
) -> Result<(), String> {
    let restricts = TYPES.iter().flat_map(|(_, words)| words.iter());
    let combined = ["type", "const", "enum", "anyOf", "oneOf", "allOf", "$ref"];
    let mut all = restricts.chain(&combined).filter(|word| {
        **word != keyword && !others.contains(*word) && keywords.contains_key(**word)
    });
    match all.next() {
        Some(word) => Err(format!("{keyword} together with {word} is not supported")),
        None => Ok(()),
    }
}

pub(super) fn lower(kind: &Value) -> String {
    kind.as_str().unwrap_or_default().to_lowercase()
}

pub(super) fn count(keywords: &Map<String, Value>, keyword: &str) -> Result<Option<usize>, String> {
    let Some(value) = keywords.get(keyword) else { return Ok(None) };
    let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
    count.map(Some).ok_or(format!("{keyword} must be a whole number"))
}

pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(super) fn has_type(value: &Value, kinds: &[String]) -> bool {
    let whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    kinds.iter().any(|kind| kind == type_of(value) || (kind == "integer" && whole))
}

/// Whether no value matches two of these schemas: each has another type.
pub(super) fn are_disjoint(schemas: &[Value]) -> bool {
    let kinds: Option<Vec<String>> = schemas
        .iter()
        .map(|schema| match (schema.get("type"), schema.get("const")) {
            (_, Some(value)) => Some(format!("={value}")),
            (Some(Value::String(kind)), None) => {
                Some(kind.to_lowercase().replace("integer", "number"))
            }
            _ => None,
        })
        .collect();
    kinds.is_some_and(|kinds| {
        let typed = kinds.iter().filter(|kind| !kind.starts_with('=')).count();
        let unique = kinds.iter().enumerate().all(|(at, kind)| !kinds[..at].contains(kind));
        unique && (typed == 0 || typed == kinds.len())
    })
}
