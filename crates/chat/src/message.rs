//! Conversations in requests: the shapes of OpenAI, Hugging Face and Ollama, read into one type.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{ChatError, Tool};

/// The input of a prompt. Absent or null fields take their defaults, unknown fields are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// The messages, oldest first.
    #[serde(default, deserialize_with = "null_as_default")]
    pub messages: Vec<Message>,
    /// The tools the model may call.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tools: Vec<Tool>,
    /// Whether the model shall think before it replies. Default: false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub thinking: bool,
    /// Whether thoughts of earlier turns that led to tool calls stay in the prompt. Default: false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub preserve_thinking: bool,
    /// Whether to add the header of a model turn at the end. Default: true.
    #[serde(default = "yes")]
    pub add_generation_prompt: bool,
    /// The beginning of the reply, which the model continues; it follows the header of the model turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<ReplyPrefix>,
}

/// The beginning of a reply that the model continues.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyPrefix {
    /// The text so far.
    #[serde(default, deserialize_with = "null_as_default")]
    pub text: String,
    /// The thought before the text; rendered if the conversation thinks and the model has markers for thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
}

/// One message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "RawMessage")]
pub struct Message {
    /// `system`, `developer`, `user`, `assistant` or `tool`; others pass through.
    pub role: String,
    /// The content.
    pub content: Content,
    /// The thought before the content (`reasoning`, `reasoning_content` or `thinking`, the first non-empty one).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Tool calls by the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Tool results inside the calling message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_responses: Vec<ToolResponse>,
    /// The id of the call whose result a `tool` message contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The tool's name on a `tool` message (`name` or `tool_name`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A message's content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged, from = "Value")]
pub enum Content {
    /// Absent or null.
    #[default]
    None,
    /// Plain text.
    Text(String),
    /// Text and media in order.
    Parts(Vec<Part>),
    /// Another JSON value: a tool may return a bare number or boolean.
    Other(Value),
}

/// A piece of a message; a bare string counts as a text part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "RawPart")]
pub struct Part {
    /// `text`, `image`, `image_url`, `audio`, `input_audio` or `video`; others are not rendered.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of a text part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The other fields of the part, such as the image's URL.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A tool call by the model: `{"id", "function": {"name", "arguments"}}` or `{"id", "name", "arguments"}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "RawToolCall", into = "RawToolCall")]
pub struct ToolCall {
    /// The id that a `tool` message refers to.
    pub id: Option<String>,
    /// The called tool.
    pub name: String,
    /// An object, the JSON text of one, or null.
    pub arguments: Value,
}

/// A tool result inside the calling message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolResponse {
    /// The tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its result.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
}

impl Conversation {
    /// Reads a conversation from JSON.
    pub fn from_json(text: &str) -> Result<Self, ChatError> {
        Ok(serde_json::from_str(text)?)
    }
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            tools: Vec::new(),
            thinking: false,
            preserve_thinking: false,
            add_generation_prompt: true,
            prefix: None,
        }
    }
}

impl Message {
    /// A message of plain text.
    pub fn new(role: impl Into<String>, text: impl Into<String>) -> Self {
        Self { role: role.into(), content: Content::Text(text.into()), ..Self::default() }
    }
}

impl ToolCall {
    /// The arguments as an object; text is parsed, null and empty text mean no arguments.
    pub fn decoded_arguments(&self) -> Result<Cow<'_, Map<String, Value>>, ChatError> {
        let wrong = |got| ChatError::Arguments { name: self.name.clone(), got };
        match &self.arguments {
            Value::Object(map) => Ok(Cow::Borrowed(map)),
            Value::Null => Ok(Cow::Owned(Map::new())),
            Value::String(text) if text.trim().is_empty() => Ok(Cow::Owned(Map::new())),
            Value::String(text) => match serde_json::from_str(text) {
                Ok(Value::Object(map)) => Ok(Cow::Owned(map)),
                Ok(Value::Null) => Ok(Cow::Owned(Map::new())),
                Ok(other) => Err(wrong(kind_of(&other))),
                Err(_) => Err(wrong("text that is not JSON")),
            },
            other => Err(wrong(kind_of(other))),
        }
    }
}

/// The type of a JSON value, for error messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn yes() -> bool {
    true
}

/// In requests, null means absent.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Distinguishes an explicit null from absence: the template prints them differently.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct RawMessage {
    role: String,
    #[serde(default)]
    content: Content,
    reasoning: Option<String>,
    reasoning_content: Option<String>,
    thinking: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    tool_calls: Vec<ToolCall>,
    #[serde(default, deserialize_with = "null_as_default")]
    tool_responses: Vec<ToolResponse>,
    tool_call_id: Option<Id>,
    name: Option<String>,
    tool_name: Option<String>,
}

impl From<RawMessage> for Message {
    fn from(raw: RawMessage) -> Self {
        Self {
            role: raw.role,
            content: raw.content,
            reasoning: first_filled([raw.reasoning, raw.reasoning_content, raw.thinking]),
            tool_calls: raw.tool_calls,
            tool_responses: raw.tool_responses,
            tool_call_id: raw.tool_call_id.map(Id::into_text),
            name: first_filled([raw.name, raw.tool_name]),
        }
    }
}

/// Goes through a JSON value, where the last of duplicate keys wins, as in other implementations.
impl From<Value> for Content {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::None,
            Value::String(text) => Self::Text(text),
            Value::Array(_) => match Vec::deserialize(&value) {
                Ok(parts) => Self::Parts(parts),
                Err(_) => Self::Other(value),
            },
            other => Self::Other(other),
        }
    }
}

fn first_filled<const N: usize>(fields: [Option<String>; N]) -> Option<String> {
    fields.into_iter().flatten().find(|text| !text.is_empty())
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawPart {
    Bare(String),
    Full {
        #[serde(rename = "type")]
        kind: Option<String>,
        text: Option<String>,
        #[serde(flatten)]
        rest: Map<String, Value>,
    },
}

impl From<RawPart> for Part {
    fn from(raw: RawPart) -> Self {
        match raw {
            RawPart::Bare(text) => Self { kind: "text".into(), text: Some(text), rest: Map::new() },
            RawPart::Full { kind, text, rest } => {
                Self { kind: kind.unwrap_or_default(), text, rest }
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a tool call needs a `function` with a name, or a name of its own")]
enum RawToolCall {
    Nested {
        id: Option<Id>,
        function: RawFunction,
    },
    Flat {
        id: Option<Id>,
        name: String,
        #[serde(default)]
        arguments: Value,
    },
}

#[derive(Serialize, Deserialize)]
struct RawFunction {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Some clients send numeric call ids.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "the id of a tool call is a string or a number")]
enum Id {
    Text(String),
    Number(serde_json::Number),
}

impl Id {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

impl From<RawToolCall> for ToolCall {
    fn from(raw: RawToolCall) -> Self {
        let (id, name, arguments) = match raw {
            RawToolCall::Nested { id, function } => (id, function.name, function.arguments),
            RawToolCall::Flat { id, name, arguments } => (id, name, arguments),
        };
        Self { id: id.map(Id::into_text), name, arguments }
    }
}

impl From<ToolCall> for RawToolCall {
    fn from(call: ToolCall) -> Self {
        let function = RawFunction { name: call.name, arguments: call.arguments };
        Self::Nested { id: call.id.map(Id::Text), function }
    }
}
