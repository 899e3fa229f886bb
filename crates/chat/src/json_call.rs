//! Tool calls in JSON: `{"name": …, "arguments": {…}}`.

use serde_json::{Map, Value};

use crate::message::kind_of;
use crate::{Call, ChatError};

/// Parses a call. Arguments may be named `parameters`, may be the JSON text of an object, and may be missing.
pub(crate) fn parse_json_call(text: &str) -> Result<Call, ChatError> {
    let wrong = |expected| ChatError::CallSyntax { at: 0, expected };
    let call: Value = serde_json::from_str(text.trim()).map_err(|error| ChatError::CallSyntax {
        // Calls have one or two lines: the column approximates the offset.
        at: error.column().saturating_sub(1),
        expected: "a JSON object",
    })?;
    // OpenAI's form nests the call in `function`.
    let call = call.get("function").filter(|inner| inner.is_object()).unwrap_or(&call);
    let name = call.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or(wrong("a `name`"))?.to_owned();
    let arguments = call.get("arguments").or_else(|| call.get("parameters"));
    let arguments = match arguments {
        Some(Value::String(text)) => {
            serde_json::from_str(text).map_err(|_| wrong("`arguments`"))?
        }
        other => other.cloned().unwrap_or_default(),
    };
    match arguments {
        Value::Object(arguments) => Ok(Call { name, arguments }),
        Value::Null => Ok(Call { name, arguments: Map::new() }),
        other => Err(ChatError::Arguments { name, got: kind_of(&other) }),
    }
}
