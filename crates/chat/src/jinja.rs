//! Runs templates of no known family in a sandbox, with Hugging Face's conventions.
//!
//! Templates are untrusted programs. They see only the conversation: no files, no clock, no other templates. Their size,
//! steps, recursion and output are limited.

use std::io::{self, Write};

use minijinja::value::Kwargs;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value as JinjaValue};
use minijinja_contrib::pycompat::unknown_method_callback;
use serde_json::{Map, Value, json};

use crate::markers::{CHANNEL_CLOSE, CHANNEL_OPEN, THINK_CLOSE, THINK_OPEN};
use crate::text::python_json;
use crate::{ChatError, Content, Conversation, Message, Prompt, ToolCall, python};

/// The longest template in bytes. Real ones have a few thousand.
const SOURCE_LIMIT: usize = 256 << 10;
/// Steps per rendering: a hundred times the need of a long conversation.
const FUEL: u64 = 20_000_000;
/// The maximum depth of macro calls.
const RECURSION: usize = 100;
/// Bytes of output allowed in addition to four times the conversation.
const OUTPUT_SLACK: usize = 1 << 20;

/// A template of a model file.
#[derive(Debug, Clone)]
pub(crate) struct JinjaTemplate {
    source: String,
    /// Whether the template reads lists of parts. Others can only concatenate strings.
    takes_parts: bool,
    bos: String,
    eos: String,
}

impl JinjaTemplate {
    /// Checks the size and the syntax of a template.
    pub(crate) fn new(source: &str, bos: &str, eos: &str) -> Result<Self, ChatError> {
        if source.len() > SOURCE_LIMIT {
            let message =
                format!("it is {} bytes long, more than the {SOURCE_LIMIT} allowed", source.len());
            return Err(ChatError::Template { message });
        }
        environment().template_from_str(source).map_err(|error| failed(&error))?;
        let takes_parts = source.contains("'text'") || source.contains("\"text\"");
        Ok(Self { source: source.into(), takes_parts, bos: bos.into(), eos: eos.into() })
    }

    /// Runs the template.
    pub(crate) fn render(&self, conversation: &Conversation) -> Result<Prompt, ChatError> {
        let messages = conversation.messages.iter().map(|m| message(m, self.takes_parts));
        let messages = messages.collect::<Result<Vec<Value>, _>>()?;
        let tool = |function: &Map<String, Value>| {
            let function = shielded(&Value::Object(function.clone()), &[]);
            json!({ "type": "function", "function": function })
        };
        let tools: Vec<Value> = conversation.tools.iter().map(|t| tool(&t.function)).collect();
        let context = json!({
            "messages": messages,
            "tools": if tools.is_empty() { Value::Null } else { tools.into() },
            "add_generation_prompt": conversation.add_generation_prompt,
            "enable_thinking": conversation.thinking,
            "preserve_thinking": conversation.preserve_thinking,
            "bos_token": self.bos,
            "eos_token": self.eos,
        });
        let environment = environment();
        let template =
            environment.template_from_str(&self.source).map_err(|error| failed(&error))?;
        let limit = 4 * context.to_string().len() + OUTPUT_SLACK;
        let mut out = Limited { bytes: Vec::new(), limit };
        template.render_captured_to(&context, &mut out).map_err(|error| failed(&error))?;
        let message = "its output is not UTF-8".to_owned();
        let text = String::from_utf8(out.bytes).map_err(|_| ChatError::Template { message })?;
        Ok(unshielded(&text))
    }
}

fn environment<'s>() -> Environment<'s> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_unknown_method_callback(unknown_method_callback);
    environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_filter("tojson", |value: JinjaValue, options: Kwargs| {
        let invalid = |error| {
            Error::new(ErrorKind::BadSerialization, "a value that JSON cannot hold")
                .with_source(error)
        };
        let value: Value = serde_json::to_value(&value).map_err(invalid)?;
        let indent = options.get::<Option<usize>>("indent")?;
        Ok::<_, Error>(python_json(&value, indent.map(|width| width.min(16))))
    });
    // Python's formatting of values, whitespace control and key order.
    environment.add_filter("upper", |value: JinjaValue| printed(&value).to_uppercase());
    environment.add_filter("lower", |value: JinjaValue| printed(&value).to_lowercase());
    environment.add_filter("string", |value: JinjaValue| printed(&value));
    environment.add_filter("trim", |value: JinjaValue, chars: Option<String>| {
        let text = printed(&value);
        match chars {
            Some(chars) => text.trim_matches(|c| chars.contains(c)).to_owned(),
            None => python::strip(&text).to_owned(),
        }
    });
    environment.add_filter("dictsort", |map: JinjaValue| {
        let mut pairs = Vec::new();
        for key in map.try_iter()? {
            let value = map.get_item(&key)?;
            pairs.push((unshielded(&printed(&key)).text().to_lowercase(), vec![key, value]));
        }
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok::<_, Error>(pairs.into_iter().map(|(_, pair)| pair).collect::<Vec<_>>())
    });
    environment.set_formatter(|out, _, value| out.write_str(&printed(value)).map_err(Error::from));
    environment
}

/// `str(value)`; empty for an undefined value.
fn printed(value: &JinjaValue) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_undefined() => String::new(),
        None => match serde_json::to_value(value) {
            Ok(json) => python::display(&json),
            Err(_) => value.to_string(),
        },
    }
}

fn failed(error: &Error) -> ChatError {
    // The message of `raise_exception`, or the engine's with the line number.
    let detail = error.detail().unwrap_or_default();
    let line = error.line().map(|line| format!(" (line {line})")).unwrap_or_default();
    let message: String = format!("{}: {detail}{line}", error.kind()).chars().take(500).collect();
    ChatError::Template { message }
}

/// A writer with a size limit.
struct Limited {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::Error::other("its output is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A message as Hugging Face passes it to a template.
fn message(message: &Message, takes_parts: bool) -> Result<Value, ChatError> {
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
fn shielded(value: &Value, kept: &[&str]) -> Value {
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
fn unshielded(text: &str) -> Prompt {
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
