//! Anthropic's message responses.

use serde_json::{Map, Value, json};

use super::{Item, Reply, ReplyWriter, SSE, Usage, frame};
use crate::{Dialect, DoneReason, Environment, GenerationEvent, GenerationRequest, hex_id};

/// Writes responses of `/v1/messages`. Blocks have contiguous indices and at most one is open.
#[derive(Debug, Clone)]
pub struct MessagesWriter {
    id: String,
    model: String,
    usage: Usage,
    is_started: bool,
    is_finished: bool,
    has_calls: bool,
    /// The open block.
    open: Option<Block>,
    /// The index of the next block.
    next: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Thinking,
    Text,
}

/// The response of `/v1/messages/count_tokens`.
pub fn token_count(input_tokens: u64) -> Value {
    json!({ "input_tokens": input_tokens })
}

impl MessagesWriter {
    /// A writer for this request.
    pub fn new(environment: &mut dyn Environment, request: &GenerationRequest) -> Self {
        Self {
            id: hex_id(environment, "msg_"),
            model: request.model.clone(),
            usage: Usage::default(),
            is_started: false,
            is_finished: false,
            has_calls: false,
            open: None,
            next: 0,
        }
    }

    fn message(&self, content: &[Value], stop: (Option<&str>, Option<&str>)) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop.0,
            "stop_sequence": stop.1,
            "usage": self.usage.anthropic(),
        })
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if !self.is_started {
            self.is_started = true;
            let message = self.message(&[], (None, None));
            send(out, "message_start", json!({ "message": message }));
        }
    }

    /// Opens `block`, closing the current one.
    fn block(&mut self, block: Block, out: &mut Vec<u8>) {
        if self.open == Some(block) {
            return;
        }
        self.close(out);
        self.open = Some(block);
        let content = match block {
            Block::Thinking => json!({ "type": "thinking", "thinking": "", "signature": "" }),
            Block::Text => json!({ "type": "text", "text": "" }),
        };
        let start = json!({ "index": self.next, "content_block": content });
        send(out, "content_block_start", start);
        self.next += 1;
    }

    /// The index of the current block.
    fn index(&self) -> usize {
        self.next.saturating_sub(1)
    }

    fn delta(&self, delta: &Value, out: &mut Vec<u8>) {
        send(out, "content_block_delta", json!({ "index": self.index(), "delta": delta }));
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        let Some(block) = self.open.take() else { return };
        if block == Block::Thinking {
            self.delta(&json!({ "type": "signature_delta", "signature": "" }), out);
        }
        send(out, "content_block_stop", json!({ "index": self.index() }));
    }

    fn call(&mut self, id: &str, name: &str, arguments: &Map<String, Value>, out: &mut Vec<u8>) {
        self.close(out);
        self.has_calls = true;
        let content = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        let start = json!({ "index": self.next, "content_block": content });
        send(out, "content_block_start", start);
        self.next += 1;
        let text = Value::Object(arguments.clone()).to_string();
        self.delta(&json!({ "type": "input_json_delta", "partial_json": text }), out);
        send(out, "content_block_stop", json!({ "index": self.index() }));
    }

    fn finish(&mut self, reason: &DoneReason, out: &mut Vec<u8>) {
        self.close(out);
        self.is_finished = true;
        let (reason, sequence) = stop(Some(reason), self.has_calls);
        let delta = json!({ "stop_reason": reason, "stop_sequence": sequence });
        let usage = json!({
            "input_tokens": self.usage.prompt_tokens - self.usage.cached_tokens,
            "cache_read_input_tokens": self.usage.cached_tokens,
            "output_tokens": self.usage.completion_tokens,
        });
        send(out, "message_delta", json!({ "delta": delta, "usage": usage }));
        send(out, "message_stop", json!({}));
    }
}

impl ReplyWriter for MessagesWriter {
    fn content_type(&self) -> &'static str {
        SSE
    }

    fn event(
        &mut self,
        environment: &mut dyn Environment,
        event: &GenerationEvent,
        out: &mut Vec<u8>,
    ) {
        if self.is_finished {
            return;
        }
        match event {
            GenerationEvent::Started { .. } if !self.is_started => {
                self.usage.count(event);
                self.start(out);
            }
            GenerationEvent::Thinking { choice: 0, text } if !text.is_empty() => {
                self.start(out);
                self.block(Block::Thinking, out);
                self.delta(&json!({ "type": "thinking_delta", "thinking": text }), out);
            }
            GenerationEvent::Text { choice: 0, text, .. } if !text.is_empty() => {
                self.start(out);
                self.block(Block::Text, out);
                self.delta(&json!({ "type": "text_delta", "text": text }), out);
            }
            GenerationEvent::ToolCall { choice: 0, name, arguments } => {
                self.start(out);
                let id = hex_id(environment, "toolu_");
                self.call(&id, name, arguments, out);
            }
            GenerationEvent::Done { choice: 0, reason, .. } => {
                self.start(out);
                self.usage.count(event);
                self.finish(reason, out);
            }
            GenerationEvent::Failed(error) => {
                self.is_finished = true;
                frame::named(out, "error", &error.body(Dialect::Anthropic));
            }
            _ => {}
        }
    }

    fn keep_alive(&mut self, _: &mut dyn Environment, out: &mut Vec<u8>) {
        if !self.is_finished {
            send(out, "ping", json!({}));
        }
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn body(&mut self, environment: &mut dyn Environment, reply: &Reply) -> Value {
        self.usage = reply.usage;
        let choice = reply.first();
        let mut content = Vec::new();
        for item in &choice.items {
            content.push(match item {
                Item::Thinking(text) => {
                    json!({ "type": "thinking", "thinking": text, "signature": "" })
                }
                Item::Text { text, .. } => json!({ "type": "text", "text": text }),
                Item::ToolCall { name, arguments } => {
                    self.has_calls = true;
                    let id = hex_id(environment, "toolu_");
                    json!({ "type": "tool_use", "id": id, "name": name, "input": arguments })
                }
            });
        }
        self.message(&content, stop(choice.reason.as_ref(), self.has_calls))
    }
}

/// `stop_reason` and `stop_sequence`
fn stop(reason: Option<&DoneReason>, has_calls: bool) -> (Option<&'static str>, Option<&str>) {
    match reason {
        Some(DoneReason::Length) => (Some("max_tokens"), None),
        _ if has_calls => (Some("tool_use"), None),
        Some(DoneReason::StopSequence(text)) => (Some("stop_sequence"), Some(text)),
        _ => (Some("end_turn"), None),
    }
}

/// Sends an event; its data starts with its type.
fn send(out: &mut Vec<u8>, kind: &str, fields: Value) {
    let mut data = Map::new();
    data.insert("type".to_owned(), kind.into());
    if let Value::Object(fields) = fields {
        data.extend(fields);
    }
    frame::named(out, kind, &Value::Object(data));
}
