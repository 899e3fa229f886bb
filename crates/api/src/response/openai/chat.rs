//! Chat Completions.

use serde_json::{Map, Value, json};

use super::super::{Choice, Reply, ReplyWriter, SSE, Usage, frame, logprobs};
use super::finish_reason;
use crate::{
    Dialect, Environment, GenerationEvent, GenerationRequest, Timestamp, TokenLogprob, call_id,
    hex_id,
};

/// Writes responses of `/v1/chat/completions`. Each choice gets one role and one `finish_reason`.
#[derive(Debug, Clone)]
pub struct ChatWriter {
    id: String,
    created: Timestamp,
    model: String,
    include_usage: bool,
    usage: Usage,
    choices: Vec<ChoiceState>,
    is_finished: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct ChoiceState {
    has_role: bool,
    calls: usize,
    is_done: bool,
}

impl ChatWriter {
    /// A writer for this request.
    pub fn new(environment: &mut dyn Environment, request: &GenerationRequest) -> Self {
        Self {
            id: hex_id(environment, "chatcmpl-"),
            created: environment.now(),
            model: request.model.clone(),
            include_usage: request.include_usage,
            usage: Usage::default(),
            choices: vec![ChoiceState::default(); request.choices() as usize],
            is_finished: false,
        }
    }

    fn envelope(&self, object: &str, choices: Value) -> Map<String, Value> {
        let mut envelope = Map::new();
        envelope.insert("id".to_owned(), self.id.as_str().into());
        envelope.insert("object".to_owned(), object.into());
        envelope.insert("created".to_owned(), self.created.unix_seconds().into());
        envelope.insert("model".to_owned(), self.model.as_str().into());
        envelope.insert("choices".to_owned(), choices);
        envelope
    }

    fn chunk(&self, choices: Value, out: &mut Vec<u8>) {
        frame::data(out, &self.envelope("chat.completion.chunk", choices).into());
    }

    fn delta(
        &self,
        index: u32,
        delta: &Value,
        logprobs: &[TokenLogprob],
        reason: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        let mut choice = json!({ "index": index, "delta": delta });
        if !logprobs.is_empty() {
            choice["logprobs"] = logprobs::chat(logprobs);
        }
        choice["finish_reason"] = reason.into();
        self.chunk(json!([choice]), out);
    }

    /// A piece of a choice, preceded by its role if needed.
    fn piece(&mut self, index: u32, delta: &Value, logprobs: &[TokenLogprob], out: &mut Vec<u8>) {
        self.role(index, out);
        self.delta(index, delta, logprobs, None, out);
    }

    fn role(&mut self, index: u32, out: &mut Vec<u8>) {
        let Some(state) = self.choices.get_mut(index as usize) else { return };
        if !std::mem::replace(&mut state.has_role, true) {
            let delta = json!({ "role": "assistant", "content": "" });
            self.delta(index, &delta, &[], None, out);
        }
    }

    fn is_open(&self, choice: u32) -> bool {
        self.choices.get(choice as usize).is_some_and(|state| !state.is_done)
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if self.choices.iter().any(|state| !state.is_done) {
            return;
        }
        self.is_finished = true;
        if self.include_usage {
            let mut chunk = self.envelope("chat.completion.chunk", json!([]));
            chunk.insert("usage".to_owned(), self.usage.completions());
            frame::data(out, &chunk.into());
        }
        frame::done(out);
    }

    fn message(environment: &mut dyn Environment, choice: &Choice) -> Value {
        let mut message = json!({ "role": "assistant", "content": choice.text(), "refusal": null });
        let thinking = choice.thinking();
        if !thinking.is_empty() {
            message["reasoning_content"] = thinking.as_str().into();
            message["reasoning"] = thinking.into();
        }
        let mut calls = Vec::new();
        for (name, arguments) in choice.calls() {
            let mut call = json!({ "id": call_id(environment), "type": "function" });
            call["function"] = function(name, arguments);
            calls.push(call);
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        message
    }
}

/// A call's function with its arguments as JSON text.
fn function(name: &str, arguments: &Map<String, Value>) -> Value {
    json!({ "name": name, "arguments": Value::Object(arguments.clone()).to_string() })
}

impl ReplyWriter for ChatWriter {
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
            GenerationEvent::Started { .. } => {
                self.usage.count(event);
                for index in 0..self.choices.len() as u32 {
                    self.role(index, out);
                }
            }
            GenerationEvent::Thinking { choice, text }
                if self.is_open(*choice) && !text.is_empty() =>
            {
                let delta = json!({ "reasoning_content": text, "reasoning": text });
                self.piece(*choice, &delta, &[], out);
            }
            GenerationEvent::Text { choice, text, logprobs }
                if self.is_open(*choice) && !(text.is_empty() && logprobs.is_empty()) =>
            {
                self.piece(*choice, &json!({ "content": text }), logprobs, out);
            }
            GenerationEvent::ToolCall { choice, name, arguments } if self.is_open(*choice) => {
                let state = &mut self.choices[*choice as usize];
                let index = state.calls;
                state.calls += 1;
                let call = json!({
                    "index": index,
                    "id": call_id(environment),
                    "type": "function",
                    "function": function(name, arguments),
                });
                self.piece(*choice, &json!({ "tool_calls": [call] }), &[], out);
            }
            GenerationEvent::Done { choice, reason, .. } if self.is_open(*choice) => {
                self.usage.count(event);
                self.role(*choice, out);
                let state = &mut self.choices[*choice as usize];
                state.is_done = true;
                let reason = finish_reason(Some(reason), state.calls > 0);
                self.delta(*choice, &json!({}), &[], Some(reason), out);
                self.finish(out);
            }
            GenerationEvent::Failed(error) => {
                self.is_finished = true;
                frame::data(out, &error.body(Dialect::OpenAi));
            }
            _ => {}
        }
    }

    fn keep_alive(&mut self, _: &mut dyn Environment, out: &mut Vec<u8>) {
        if !self.is_finished {
            frame::comment(out);
        }
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn body(&mut self, environment: &mut dyn Environment, reply: &Reply) -> Value {
        let mut choices = Vec::new();
        for (index, choice) in reply.choices.iter().enumerate() {
            let has_calls = choice.calls().next().is_some();
            choices.push(json!({
                "index": index,
                "message": Self::message(environment, choice),
                "logprobs": logprobs::chat(&choice.logprobs()),
                "finish_reason": finish_reason(choice.reason.as_ref(), has_calls),
            }));
        }
        let mut body = self.envelope("chat.completion", choices.into());
        body.insert("usage".to_owned(), reply.usage.completions());
        // Before the choices, as in OpenAI's responses.
        body.shift_insert(4, "system_fingerprint".to_owned(), "fp_rullama".into());
        body.into()
    }
}
