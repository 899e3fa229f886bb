//! A model's parameters as text.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// One line per value: the name padded to 30 characters, a space, the value. Strings are JSON-quoted, which clients parse;
/// lists become several lines.
///
/// ```
/// use rullama_api::listing::parameters_text;
/// use serde_json::json;
///
/// let parameters = json!({"stop": ["<turn|>"], "top_k": 64});
/// assert_eq!(
///     parameters_text(parameters.as_object().unwrap()),
///     "stop                           \"<turn|>\"\ntop_k                          64",
/// );
/// ```
pub fn parameters_text(parameters: &Map<String, Value>) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &Value| {
        let separator = if text.is_empty() { "" } else { "\n" };
        // Writing to a string cannot fail.
        _ = write!(text, "{separator}{name:<30} {value}");
    };
    for (name, value) in parameters {
        match value {
            Value::Array(values) => values.iter().for_each(|value| line(name, value)),
            Value::Null => {}
            value => line(name, value),
        }
    }
    text
}
