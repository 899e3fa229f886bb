//! A tool declaration of a request.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// A tool declaration: OpenAI's `{"type": "function", "function": {…}}`, or only the inner object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tool {
    /// The function object: `name`, `description`, `parameters` and any other fields sent.
    pub function: Map<String, Value>,
}

impl Tool {
    /// The tool's name, empty if it has none.
    pub fn name(&self) -> &str {
        self.function.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// The parameters' schemas by name, if the declaration has any.
    pub fn properties(&self) -> Option<&Map<String, Value>> {
        self.function.get("parameters")?.get("properties")?.as_object()
    }
}

/// Whether a schema accepts strings: by its type, one of its types, or one of its alternatives.
pub(crate) fn accepts_string(schema: &Value) -> bool {
    let is_string =
        |value: &Value| value.as_str().is_some_and(|t| t.eq_ignore_ascii_case("string"));
    let typed = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(is_string),
        Some(one) => is_string(one),
        None => false,
    };
    let alternatives = schema.get("anyOf").and_then(Value::as_array);
    typed || alternatives.is_some_and(|list| list.iter().any(accepts_string))
}

impl<'de> Deserialize<'de> for Tool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut outer = Map::deserialize(deserializer)?;
        match outer.remove("function") {
            Some(Value::Object(function)) => Ok(Self { function }),
            Some(_) => Err(D::Error::custom("a tool's `function` must be an object")),
            None if outer.contains_key("name") => Ok(Self { function: outer }),
            None => Err(D::Error::missing_field("function")),
        }
    }
}

impl Serialize for Tool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([
            ("type", Value::from("function")),
            ("function", Value::Object(self.function.clone())),
        ])
    }
}
