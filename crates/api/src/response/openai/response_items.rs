//! Output items of the Responses API.

use serde_json::{Map, Value, json};

use super::super::{Item, logprobs};
use crate::{Environment, TokenLogprob, call_id, hex_id};

/// An output item with its ids.
#[derive(Debug, Clone)]
pub(super) enum OutputItem {
    Reasoning { id: String, text: String },
    Message { id: String, text: String, logprobs: Vec<TokenLogprob> },
    Call { id: String, call_id: String, name: String, arguments: String },
}

impl OutputItem {
    pub(super) fn reasoning(environment: &mut dyn Environment) -> Self {
        Self::Reasoning { id: hex_id(environment, "rs_"), text: String::new() }
    }

    pub(super) fn message(environment: &mut dyn Environment) -> Self {
        let id = hex_id(environment, "msg_");
        Self::Message { id, text: String::new(), logprobs: Vec::new() }
    }

    pub(super) fn call(
        environment: &mut dyn Environment,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Self {
        Self::Call {
            id: hex_id(environment, "fc_"),
            call_id: call_id(environment),
            name: name.to_owned(),
            arguments: Value::Object(arguments.clone()).to_string(),
        }
    }

    /// A completed item of a collected reply.
    pub(super) fn of(environment: &mut dyn Environment, item: &Item) -> Self {
        match item {
            Item::Thinking(text) => {
                Self::Reasoning { id: hex_id(environment, "rs_"), text: text.clone() }
            }
            Item::Text { text, logprobs } => Self::Message {
                id: hex_id(environment, "msg_"),
                text: text.clone(),
                logprobs: logprobs.clone(),
            },
            Item::ToolCall { name, arguments } => Self::call(environment, name, arguments),
        }
    }

    pub(super) fn id(&self) -> &str {
        match self {
            Self::Reasoning { id, .. } | Self::Message { id, .. } | Self::Call { id, .. } => id,
        }
    }

    /// The item when it is added.
    pub(super) fn added(&self) -> Value {
        match self {
            Self::Reasoning { id, .. } => {
                json!({ "id": id, "type": "reasoning", "summary": [], "status": "in_progress" })
            }
            Self::Message { id, .. } => json!({
                "id": id,
                "type": "message",
                "status": "in_progress",
                "role": "assistant",
                "content": [],
            }),
            Self::Call { .. } => self.function_call("in_progress", ""),
        }
    }

    /// The completed item; `status` is `completed` or `incomplete`.
    pub(super) fn done(&self, status: &str) -> Value {
        match self {
            Self::Reasoning { id, text } => json!({
                "id": id,
                "type": "reasoning",
                "summary": [summary_part(text)],
                "encrypted_content": text,
            }),
            Self::Message { id, text, logprobs } => json!({
                "id": id,
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": [text_part(text, logprobs)],
            }),
            Self::Call { arguments, .. } => self.function_call(status, arguments),
        }
    }

    fn function_call(&self, status: &str, arguments: &str) -> Value {
        let Self::Call { id, call_id, name, .. } = self else { return Value::Null };
        json!({
            "id": id,
            "type": "function_call",
            "status": status,
            "call_id": call_id,
            "name": name,
            "arguments": arguments,
        })
    }
}

/// A part of a reasoning item.
pub(super) fn summary_part(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}

/// A part of a message.
pub(super) fn text_part(text: &str, logprobs: &[TokenLogprob]) -> Value {
    let logprobs = logprobs::list(logprobs);
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": logprobs })
}
