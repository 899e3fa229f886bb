//! JSON schemas, before the library sees them.

use serde_json::{Value, json};

use crate::GuidanceError;

/// White space between values: a space, or a new line and its indentation. Weak models may otherwise spend all tokens on it.
const SPACE: &str = r" |\r?\n[ \t]{0,32}";

/// Keywords that restrict values, but that the library ignores.
const IGNORED: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

/// A schema as the library takes it.
pub(crate) fn prepared(schema: &Value) -> Result<Value, GuidanceError> {
    let refused = |why: String| Err(GuidanceError::Schema { why });
    let mut schema = match schema {
        Value::Object(_) | Value::Bool(_) => schema.clone(),
        _ => return refused("a schema is an object, such as {\"type\":\"object\"}".into()),
    };
    let mut ignored = None;
    subschemas(&schema, &mut |schema, is_root| {
        let found = IGNORED.into_iter().find(|keyword| schema.get(keyword).is_some());
        let nested_id = !is_root && schema.get("$id").is_some_and(Value::is_string);
        ignored = ignored.or(found).or(nested_id.then_some("$id below the root"));
    });
    if let Some(keyword) = ignored {
        return refused(format!("{keyword} is not supported"));
    }
    if let Value::Object(keys) = &mut schema {
        keys.entry("x-guidance").or_insert(json!({ "whitespace_pattern": SPACE }));
    }
    Ok(schema)
}

/// Calls `each` with a schema and those inside it.
fn subschemas(schema: &Value, each: &mut dyn FnMut(&Value, bool)) {
    each(schema, true);
    inner(schema, each);
}

fn inner(schema: &Value, each: &mut dyn FnMut(&Value, bool)) {
    let Some(keywords) = schema.as_object() else { return };
    for (keyword, value) in keywords {
        let inside: Vec<&Value> = match (keyword.as_str(), value) {
            // Data, not schemas.
            ("const" | "enum" | "default" | "examples" | "required" | "x-guidance", _) => continue,
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(named),
            ) => named.values().collect(),
            (_, Value::Array(several)) => several.iter().collect(),
            (_, one) => vec![one],
        };
        for schema in inside {
            each(schema, false);
            inner(schema, each);
        }
    }
}
