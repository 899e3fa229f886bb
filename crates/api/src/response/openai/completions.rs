//! Completions.

use serde_json::{Map, Value, json};

use super::super::{Reply, ReplyWriter, SSE, Usage, frame, logprobs};
use super::finish_reason;
use crate::{
    Dialect, Environment, GenerationEvent, GenerationRequest, Timestamp, TokenLogprob, hex_id,
};

/// Writes responses of `/v1/completions`.
#[derive(Debug, Clone)]
pub struct CompletionsWriter {
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
    /// Characters before the next token.
    offset: usize,
    is_done: bool,
}

impl CompletionsWriter {
    /// A writer for this request.
    pub fn new(environment: &mut dyn Environment, request: &GenerationRequest) -> Self {
        Self {
            id: hex_id(environment, "cmpl-"),
            created: environment.now(),
            model: request.model.clone(),
            include_usage: request.include_usage,
            usage: Usage::default(),
            choices: vec![ChoiceState::default(); request.choices() as usize],
            is_finished: false,
        }
    }

    fn envelope(&self, choices: Value) -> Map<String, Value> {
        let mut envelope = Map::new();
        envelope.insert("id".to_owned(), self.id.as_str().into());
        envelope.insert("object".to_owned(), "text_completion".into());
        envelope.insert("created".to_owned(), self.created.unix_seconds().into());
        envelope.insert("model".to_owned(), self.model.as_str().into());
        envelope.insert("choices".to_owned(), choices);
        envelope
    }

    fn chunk(
        &mut self,
        index: u32,
        text: &str,
        logprobs: &[TokenLogprob],
        reason: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        let Some(state) = self.choices.get_mut(index as usize) else { return };
        let choice = json!({
            "text": text,
            "index": index,
            "logprobs": logprobs::legacy(logprobs, &mut state.offset),
            "finish_reason": reason,
        });
        frame::data(out, &self.envelope(json!([choice])).into());
    }

    fn is_open(&self, choice: u32) -> bool {
        self.choices.get(choice as usize).is_some_and(|state| !state.is_done)
    }
}

impl ReplyWriter for CompletionsWriter {
    fn content_type(&self) -> &'static str {
        SSE
    }

    fn event(&mut self, _: &mut dyn Environment, event: &GenerationEvent, out: &mut Vec<u8>) {
        if self.is_finished {
            return;
        }
        match event {
            GenerationEvent::Started { .. } => self.usage.count(event),
            GenerationEvent::Text { choice, text, logprobs }
                if self.is_open(*choice) && !(text.is_empty() && logprobs.is_empty()) =>
            {
                self.chunk(*choice, text, logprobs, None, out);
            }
            GenerationEvent::Done { choice, reason, .. } if self.is_open(*choice) => {
                self.usage.count(event);
                self.chunk(*choice, "", &[], Some(finish_reason(Some(reason), false)), out);
                self.choices[*choice as usize].is_done = true;
                if self.choices.iter().all(|state| state.is_done) {
                    self.is_finished = true;
                    if self.include_usage {
                        let mut chunk = self.envelope(json!([]));
                        chunk.insert("usage".to_owned(), self.usage.completions());
                        frame::data(out, &chunk.into());
                    }
                    frame::done(out);
                }
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

    fn body(&mut self, _: &mut dyn Environment, reply: &Reply) -> Value {
        let choice = |(index, choice): (usize, &super::super::Choice)| {
            json!({
                "text": choice.text(),
                "index": index,
                "logprobs": logprobs::legacy(&choice.logprobs(), &mut 0),
                "finish_reason": finish_reason(choice.reason.as_ref(), false),
            })
        };
        let choices: Vec<Value> = reply.choices.iter().enumerate().map(choice).collect();
        let mut body = self.envelope(choices.into());
        body.insert("usage".to_owned(), reply.usage.completions());
        body.into()
    }
}
