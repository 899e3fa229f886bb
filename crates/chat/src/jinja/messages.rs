//! The conversation as a template sees it, with untrusted text told apart from the template's own.

use serde_json::{Map, Value, json};

use crate::markers::{CHANNEL_CLOSE, CHANNEL_OPEN, THINK_CLOSE, THINK_OPEN};
use crate::{ChatError, Content, Message, Prompt, ToolCall};

/// A message as Hugging Face passes it to a template.
pub(super) fn message(message: &Message, takes_parts: bool) -> Result<Value, ChatError> {
    let thoughts = [THINK_OPEN, THINK_CLOSE, CHANNEL_OPEN, CHANNEL_CLOSE];
    let is_model = matches!(message.role.as_str(), "assistant" | "model");
    let kept = if is_model { &thoughts[..] } else { &[] };
    let mut out = Map::new();
    out.insert("role".into(), shield(&message.role, &[]).into());
    let content = match &message.content {
        Content::None if takes_parts => Value::Null,
        Content::None => Value::from(""),
        Content::Text(text) => shield(text, kept).into(),
        Content::Parts(parts) if !takes_parts && parts.iter().all(|part| part.kind == "text") => {
            let text: String = parts.iter().filter_map(|part| part.text.as_deref()).collect();
            shield(&text, kept).into()
        }
        Content::Parts(parts) => {
            let part = |part| serde_json::to_value(part).map(|value| shielded(&value, kept));
            Value::Array(parts.iter().map(part).collect::<Result<_, _>>()?)
        }
        Content::Other(value) => shielded(value, kept),
    };
    out.insert("content".into(), content);
    let texts = [
        ("reasoning_content", &message.reasoning),
        ("tool_call_id", &message.tool_call_id),
        ("name", &message.name),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            out.insert(key.into(), shield(text, &[]).into());
        }
    }
    if !message.tool_calls.is_empty() {
        let calls: Result<Vec<Value>, ChatError> = message.tool_calls.iter().map(call).collect();
        out.insert("tool_calls".into(), calls?.into());
    }
    Ok(Value::Object(out))
}

fn call(call: &ToolCall) -> Result<Value, ChatError> {
    let arguments = Value::Object(call.decoded_arguments()?.into_owned());
    let function = json!({ "name": call.name, "arguments": arguments });
    let function = shielded(&function, &[]);
    Ok(json!({ "type": "function", "id": call.id, "function": function }))
}

/// Characters of markers. In untrusted text they are mapped to a private-use area while the template runs, to distinguish them
/// from the template's own afterwards.
const SHIELDED: [char; 4] = ['<', '>', '[', '|'];
const PRIVATE_USE: u32 = 0xF_0000;

/// Tags that templates search for in messages.
const TEMPLATE_TAGS: [&str; 2] = ["<tool_response>", "</tool_response>"];

/// Maps the marker characters of untrusted text, except in `kept` tags and those that templates search for.
fn shield(text: &str, kept: &[&str]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(tag) = kept.iter().chain(&TEMPLATE_TAGS).find(|tag| rest.starts_with(**tag)) {
            out.push_str(tag);
            rest = &rest[tag.len()..];
            continue;
        }
        let moved =
            SHIELDED.contains(&c).then(|| char::from_u32(PRIVATE_USE + u32::from(c))).flatten();
        out.push(moved.unwrap_or(c));
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// [`shield`] for every string of a value, keys included.
pub(super) fn shielded(value: &Value, kept: &[&str]) -> Value {
    match value {
        Value::String(text) => shield(text, kept).into(),
        Value::Array(items) => items.iter().map(|item| shielded(item, kept)).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, item)| (shield(key, kept), shielded(item, kept))).collect()
        }
        other => other.clone(),
    }
}

/// The prompt: mapped characters are untrusted, all others come from the template. A marker with even one untrusted
/// character is text.
pub(super) fn unshielded(text: &str) -> Prompt {
    let mut out = Prompt::default();
    let original = |c: char| {
        let c = u32::from(c).checked_sub(PRIVATE_USE).and_then(char::from_u32)?;
        SHIELDED.contains(&c).then_some(c)
    };
    let mut rest = text;
    while let Some(at) = rest.find(|c| original(c).is_some()) {
        let (before, from) = rest.split_at(at);
        out.trusted(before);
        let mut chars = from.chars();
        if let Some(c) = chars.next().and_then(original) {
            out.untrusted(c.encode_utf8(&mut [0; 4]));
        }
        rest = chars.as_str();
    }
    out.trusted(rest);
    out
}
