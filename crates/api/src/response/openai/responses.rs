//! Responses: a stream of numbered events about items; at most one item is open.

use serde_json::{Map, Value, json};

use super::super::{Reply, ReplyWriter, SSE, Usage, frame, logprobs};
use super::response_items::{OutputItem, summary_part, text_part};
use crate::request::openai::ResponsesRequest;
use crate::{ApiError, DoneReason, Environment, GenerationEvent, Timestamp, TokenLogprob, hex_id};

/// Writes responses of `/v1/responses`.
#[derive(Debug, Clone)]
pub struct ResponsesWriter {
    id: String,
    created: Timestamp,
    model: String,
    echo: Map<String, Value>,
    usage: Usage,
    sequence: u64,
    is_started: bool,
    is_finished: bool,
    open: Option<OutputItem>,
    output: Vec<Value>,
}

impl ResponsesWriter {
    /// A writer for this request.
    pub fn new(environment: &mut dyn Environment, request: &ResponsesRequest) -> Self {
        Self {
            id: hex_id(environment, "resp_"),
            created: environment.now(),
            model: request.generation.model.clone(),
            echo: request.echo.clone(),
            usage: Usage::default(),
            sequence: 0,
            is_started: false,
            is_finished: false,
            open: None,
            output: Vec::new(),
        }
    }

    /// The response object.
    fn response(&self, status: &str, error: Option<&ApiError>, completed: Option<u64>) -> Value {
        let error = error
            .map(|error| json!({ "code": error.responses_code(), "message": error.to_string() }));
        let details = (status == "incomplete").then(|| json!({ "reason": "max_output_tokens" }));
        let usage = matches!(status, "completed" | "incomplete").then(|| self.usage.responses());
        let mut response = json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created.unix_seconds(),
            "completed_at": completed,
            "status": status,
            "error": error,
            "incomplete_details": details,
            "model": self.model,
            "output": self.output,
            "usage": usage,
        });
        for (name, value) in &self.echo {
            response[name] = value.clone();
        }
        response
    }

    fn send(&mut self, kind: &str, fields: Value, out: &mut Vec<u8>) {
        let kind = format!("response.{kind}");
        let mut data = Map::new();
        data.insert("type".to_owned(), kind.as_str().into());
        data.insert("sequence_number".to_owned(), self.sequence.into());
        if let Value::Object(fields) = fields {
            data.extend(fields);
        }
        self.sequence += 1;
        frame::named(out, &kind, &data.into());
    }

    /// An event about the open item.
    fn send_item(&mut self, kind: &str, id: &str, fields: Value, out: &mut Vec<u8>) {
        let mut data = Map::new();
        data.insert("item_id".to_owned(), id.into());
        data.insert("output_index".to_owned(), self.output.len().into());
        if let Value::Object(fields) = fields {
            data.extend(fields);
        }
        self.send(kind, data.into(), out);
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.is_started, true) {
            let response = self.response("in_progress", None, None);
            self.send("created", json!({ "response": response }), out);
            self.in_progress(out);
        }
    }

    fn in_progress(&mut self, out: &mut Vec<u8>) {
        let response = self.response("in_progress", None, None);
        self.send("in_progress", json!({ "response": response }), out);
    }

    fn add(&mut self, item: OutputItem, out: &mut Vec<u8>) {
        let added = json!({ "output_index": self.output.len(), "item": item.added() });
        self.send("output_item.added", added, out);
        match &item {
            OutputItem::Reasoning { id, .. } => {
                let part = json!({ "summary_index": 0, "part": summary_part("") });
                self.send_item("reasoning_summary_part.added", id, part, out);
            }
            OutputItem::Message { id, .. } => {
                let part = json!({ "content_index": 0, "part": text_part("", &[]) });
                self.send_item("content_part.added", id, part, out);
            }
            OutputItem::Call { .. } => {}
        }
        self.open = Some(item);
    }

    fn close(&mut self, status: &str, out: &mut Vec<u8>) {
        let Some(item) = self.open.take() else { return };
        let id = item.id();
        match &item {
            OutputItem::Reasoning { text, .. } => {
                let done = json!({ "summary_index": 0, "text": text });
                self.send_item("reasoning_summary_text.done", id, done, out);
                let part = json!({ "summary_index": 0, "part": summary_part(text) });
                self.send_item("reasoning_summary_part.done", id, part, out);
            }
            OutputItem::Message { text, logprobs, .. } => {
                let list = logprobs::list(logprobs);
                let done = json!({ "content_index": 0, "text": text, "logprobs": list });
                self.send_item("output_text.done", id, done, out);
                let part = json!({ "content_index": 0, "part": text_part(text, logprobs) });
                self.send_item("content_part.done", id, part, out);
            }
            OutputItem::Call { name, arguments, .. } => {
                self.send_item(
                    "function_call_arguments.delta",
                    id,
                    json!({ "delta": arguments }),
                    out,
                );
                let done = json!({ "name": name, "arguments": arguments });
                self.send_item("function_call_arguments.done", id, done, out);
            }
        }
        let item = item.done(status);
        let done = json!({ "output_index": self.output.len(), "item": item });
        self.send("output_item.done", done, out);
        self.output.push(item);
    }

    fn thinking(&mut self, environment: &mut dyn Environment, piece: &str, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OutputItem::Reasoning { .. })) {
            self.close("completed", out);
            self.add(OutputItem::reasoning(environment), out);
        }
        if let Some(OutputItem::Reasoning { id, text }) = &mut self.open {
            text.push_str(piece);
            let id = id.clone();
            let delta = json!({ "summary_index": 0, "delta": piece });
            self.send_item("reasoning_summary_text.delta", &id, delta, out);
        }
    }

    fn text(
        &mut self,
        environment: &mut dyn Environment,
        piece: &str,
        new: &[TokenLogprob],
        out: &mut Vec<u8>,
    ) {
        if !matches!(self.open, Some(OutputItem::Message { .. })) {
            self.close("completed", out);
            self.add(OutputItem::message(environment), out);
        }
        if let Some(OutputItem::Message { id, text, logprobs }) = &mut self.open {
            text.push_str(piece);
            logprobs.extend_from_slice(new);
            let id = id.clone();
            let list = logprobs::list(new);
            let delta = json!({ "content_index": 0, "delta": piece, "logprobs": list });
            self.send_item("output_text.delta", &id, delta, out);
        }
    }

    fn finish(
        &mut self,
        status: &str,
        error: Option<&ApiError>,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) {
        self.close(if status == "completed" { "completed" } else { "incomplete" }, out);
        self.is_finished = true;
        let completed = (status == "completed").then(|| now.unix_seconds());
        let response = self.response(status, error, completed);
        self.send(status, json!({ "response": response }), out);
    }
}

fn status_of(reason: Option<&DoneReason>) -> &'static str {
    if reason == Some(&DoneReason::Length) { "incomplete" } else { "completed" }
}

impl ReplyWriter for ResponsesWriter {
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
        self.start(out);
        match event {
            GenerationEvent::Started { .. } => self.usage.count(event),
            GenerationEvent::Thinking { choice: 0, text } if !text.is_empty() => {
                self.thinking(environment, text, out);
            }
            GenerationEvent::Text { choice: 0, text, logprobs }
                if !(text.is_empty() && logprobs.is_empty()) =>
            {
                self.text(environment, text, logprobs, out);
            }
            GenerationEvent::ToolCall { choice: 0, name, arguments } => {
                self.close("completed", out);
                self.add(OutputItem::call(environment, name, arguments), out);
                self.close("completed", out);
            }
            GenerationEvent::Done { choice: 0, reason, .. } => {
                self.usage.count(event);
                self.finish(status_of(Some(reason)), None, environment.now(), out);
            }
            GenerationEvent::Failed(error) => {
                self.finish("failed", Some(error), environment.now(), out);
            }
            _ => {}
        }
    }

    /// Some clients time out on missing events, not bytes; `in_progress` may be repeated until the first item.
    fn keep_alive(&mut self, _: &mut dyn Environment, out: &mut Vec<u8>) {
        if self.is_finished {
        } else if !self.is_started {
            self.start(out);
        } else if self.output.is_empty() && self.open.is_none() {
            self.in_progress(out);
        } else {
            frame::comment(out);
        }
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn body(&mut self, environment: &mut dyn Environment, reply: &Reply) -> Value {
        self.usage = reply.usage;
        let choice = reply.first();
        let status = status_of(choice.reason.as_ref());
        let last = choice.items.len().saturating_sub(1);
        for (index, item) in choice.items.iter().enumerate() {
            // Only the last item can be incomplete, and calls are always complete.
            let is_cut = index == last && !matches!(item, super::super::Item::ToolCall { .. });
            let item = OutputItem::of(environment, item);
            self.output.push(item.done(if is_cut { status } else { "completed" }));
        }
        let completed = (status == "completed").then(|| environment.now().unix_seconds());
        self.response(status, None, completed)
    }
}
