//! Shared by the renderers of several families.

use serde_json::{Map, Value};

use crate::python;
use crate::{ChatError, Content, Message, Tool};

/// A message's text: its content, the text of its parts, or empty.
pub(crate) fn text_of(message: &Message) -> Result<String, ChatError> {
    match &message.content {
        Content::None => Ok(String::new()),
        Content::Text(text) => Ok(text.clone()),
        Content::Parts(parts) => Ok(parts.iter().filter_map(|part| part.text.as_deref()).collect()),
        Content::Other(value) => match value {
            Value::Array(_) | Value::Object(_) => {
                Err(ChatError::ContentShape { role: message.role.clone() })
            }
            scalar => Ok(python::display(scalar)),
        },
    }
}

/// The system message at the beginning, if there is one, and the messages after it.
pub(crate) fn split_system(messages: &[Message]) -> (Option<&Message>, &[Message]) {
    match messages.split_first() {
        Some((first, rest)) if first.role == "system" => (Some(first), rest),
        _ => (None, messages),
    }
}

/// `json.dumps(value, ensure_ascii=False, indent=indent)`.
pub(crate) fn python_json(value: &Value, indent: Option<usize>) -> String {
    let mut out = String::new();
    write_json(&mut out, value, indent, 0);
    out
}

/// [`python_json`] of an object, on one line.
pub(crate) fn python_object(map: &Map<String, Value>) -> String {
    let mut out = String::new();
    write_object(&mut out, map, None, 0);
    out
}

/// A tool's declaration as JSON.
pub(crate) fn declaration(tool: &Tool, indent: Option<usize>) -> String {
    let mut out = String::from("{");
    for (i, key) in ["type", "function"].into_iter().enumerate() {
        line(&mut out, indent, 1, i > 0);
        write_string(&mut out, key);
        out.push_str(": ");
        match key {
            "type" => out.push_str("\"function\""),
            _ => write_object(&mut out, &tool.function, indent, 1),
        }
    }
    line(&mut out, indent, 0, false);
    out.push('}');
    out
}

/// Begins a line, after a comma if `comma`; without indent, only writes the comma.
fn line(out: &mut String, indent: Option<usize>, depth: usize, comma: bool) {
    match indent {
        Some(width) => {
            out.push_str(if comma { ",\n" } else { "\n" });
            out.extend(std::iter::repeat_n(' ', width * depth));
        }
        None => out.push_str(if comma { ", " } else { "" }),
    }
}

fn write_object(out: &mut String, map: &Map<String, Value>, indent: Option<usize>, depth: usize) {
    if map.is_empty() {
        return out.push_str("{}");
    }
    out.push('{');
    for (i, (key, item)) in map.iter().enumerate() {
        line(out, indent, depth + 1, i > 0);
        write_string(out, key);
        out.push_str(": ");
        write_json(out, item, indent, depth + 1);
    }
    line(out, indent, depth, false);
    out.push('}');
}

fn write_json(out: &mut String, value: &Value, indent: Option<usize>, depth: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(n) => out.push_str(&python::number(n)),
        Value::String(text) => write_string(out, text),
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Object(map) => write_object(out, map, indent, depth),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                line(out, indent, depth + 1, i > 0);
                write_json(out, item, indent, depth + 1);
            }
            line(out, indent, depth, false);
            out.push(']');
        }
    }
}

/// Escapes like Python: quotes, backslashes and control characters below U+0020.
fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.push_str("\\u00");
                let digits = [c as usize >> 4, c as usize & 15];
                out.extend(digits.map(|digit| char::from(HEX[digit])));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_matches_pythons_json_dumps() {
        let value = json!({"b": [1, 2.0, "é\"\n\u{7f}\u{1f}\\", null, true], "a": {}, "c": [], "d": {"x": 1e30}});
        assert_eq!(
            python_json(&value, None),
            "{\"b\": [1, 2.0, \"é\\\"\\n\u{7f}\\u001f\\\\\", null, true], \"a\": {}, \"c\": [], \"d\": {\"x\": 1e+30}}"
        );
        assert_eq!(
            python_json(&json!({"a": [1], "b": {}}), Some(4)),
            "{\n    \"a\": [\n        1\n    ],\n    \"b\": {}\n}"
        );
    }
}
