//! Ollama's responses to chat and generate.

use serde_json::{Map, Value, json};

use super::{NDJSON, Reply, ReplyWriter, Usage, frame, logprobs};
use crate::environment::nanoseconds;
use crate::{
    Dialect, DoneReason, Environment, GenerationEvent, GenerationRequest, Input, Stats, call_id,
};

/// Writes responses of `/api/chat` and `/api/generate`.
#[derive(Debug, Clone)]
pub struct OllamaWriter {
    model: String,
    shape: Shape,
    usage: Usage,
    calls: usize,
    is_finished: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Chat,
    Generate { raw: bool },
}

/// The new content of a line.
#[derive(Default)]
struct News<'a> {
    text: &'a str,
    thinking: &'a str,
    calls: Vec<Value>,
}

impl OllamaWriter {
    /// A writer for `/api/chat`.
    pub fn chat(request: &GenerationRequest) -> Self {
        Self::new(request, Shape::Chat)
    }

    /// A writer for `/api/generate`.
    pub fn generate(request: &GenerationRequest) -> Self {
        let raw = matches!(&request.input, Input::Prompt(prompt) if prompt.raw);
        Self::new(request, Shape::Generate { raw })
    }

    fn new(request: &GenerationRequest, shape: Shape) -> Self {
        let model = request.model.clone();
        Self { model, shape, usage: Usage::default(), calls: 0, is_finished: false }
    }

    /// The response to a request without messages or prompt: the model was loaded, or unloaded.
    pub fn loaded(&self, environment: &mut dyn Environment, unloaded: bool) -> Value {
        let mut line = self.line(environment, News::default(), true);
        line.insert("done_reason".to_owned(), if unloaded { "unload" } else { "load" }.into());
        Value::Object(line)
    }

    /// The response to a request with `_debug_render_only`.
    pub fn rendered(
        &self,
        environment: &mut dyn Environment,
        prompt: &str,
        image_count: usize,
    ) -> Value {
        json!({
            "model": self.model,
            "created_at": environment.now(),
            "_debug_info": { "rendered_template": prompt, "image_count": image_count },
        })
    }

    fn line(
        &self,
        environment: &mut dyn Environment,
        news: News<'_>,
        done: bool,
    ) -> Map<String, Value> {
        let mut line = Map::new();
        let mut set = |name: &str, value: Value| _ = line.insert(name.to_owned(), value);
        set("model", self.model.as_str().into());
        set("created_at", environment.now().to_string().into());
        let mut message = Map::new();
        if self.shape == Shape::Chat {
            message.insert("role".to_owned(), "assistant".into());
            message.insert("content".to_owned(), news.text.into());
        } else {
            message.insert("response".to_owned(), news.text.into());
        }
        if !news.thinking.is_empty() {
            message.insert("thinking".to_owned(), news.thinking.into());
        }
        if !news.calls.is_empty() {
            message.insert("tool_calls".to_owned(), news.calls.into());
        }
        if self.shape == Shape::Chat {
            set("message", message.into());
        } else {
            message.into_iter().for_each(|(name, value)| set(&name, value));
        }
        set("done", done.into());
        // One client expects an array in every line.
        if self.shape != Shape::Chat {
            set("context", json!([]));
        }
        line
    }

    /// A call with its id and index.
    fn call(
        &mut self,
        environment: &mut dyn Environment,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Value {
        let index = self.calls;
        self.calls += 1;
        json!({
            "id": call_id(environment),
            "function": { "index": index, "name": name, "arguments": arguments },
        })
    }

    /// The reason and all six counters, including zeros.
    fn finish(&self, line: &mut Map<String, Value>, reason: Option<&DoneReason>, stats: &Stats) {
        let reason = if reason == Some(&DoneReason::Length) { "length" } else { "stop" };
        let figures = [
            ("total_duration", nanoseconds(stats.total)),
            ("load_duration", nanoseconds(stats.load)),
            ("prompt_eval_count", self.usage.prompt_tokens),
            ("prompt_eval_duration", nanoseconds(stats.prompt)),
            ("eval_count", stats.completion_tokens),
            ("eval_duration", nanoseconds(stats.eval)),
        ];
        line.insert("done_reason".to_owned(), reason.into());
        if self.shape == (Shape::Generate { raw: false }) {
            line.insert("context".to_owned(), stats.context.clone().into());
        }
        for (name, figure) in figures {
            line.insert(name.to_owned(), figure.into());
        }
    }
}

impl ReplyWriter for OllamaWriter {
    fn content_type(&self) -> &'static str {
        NDJSON
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
        self.usage.count(event);
        let line = match event {
            GenerationEvent::Thinking { choice: 0, text } if !text.is_empty() => {
                self.line(environment, News { thinking: text, ..News::default() }, false)
            }
            GenerationEvent::Text { choice: 0, text, logprobs }
                if !(text.is_empty() && logprobs.is_empty()) =>
            {
                let mut line = self.line(environment, News { text, ..News::default() }, false);
                if !logprobs.is_empty() {
                    line.insert("logprobs".to_owned(), logprobs::list(logprobs));
                }
                line
            }
            GenerationEvent::ToolCall { choice: 0, name, arguments } => {
                let calls = vec![self.call(environment, name, arguments)];
                self.line(environment, News { calls, ..News::default() }, false)
            }
            GenerationEvent::Done { choice: 0, reason, stats } => {
                self.is_finished = true;
                let mut line = self.line(environment, News::default(), true);
                self.finish(&mut line, Some(reason), stats);
                line
            }
            GenerationEvent::Failed(error) => {
                self.is_finished = true;
                return frame::line(out, &error.body(Dialect::Ollama));
            }
            _ => return,
        };
        frame::line(out, &Value::Object(line));
    }

    /// Nothing: clients fail on a blank line.
    fn keep_alive(&mut self, _: &mut dyn Environment, _: &mut Vec<u8>) {}

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn body(&mut self, environment: &mut dyn Environment, reply: &Reply) -> Value {
        self.usage = reply.usage;
        let choice = reply.first();
        let mut calls = Vec::new();
        for (name, arguments) in choice.calls() {
            calls.push(self.call(environment, name, arguments));
        }
        let news = News { text: &choice.text(), thinking: &choice.thinking(), calls };
        let mut line = self.line(environment, news, true);
        self.finish(&mut line, choice.reason.as_ref(), &choice.stats);
        let logprobs = choice.logprobs();
        if !logprobs.is_empty() {
            line.insert("logprobs".to_owned(), logprobs::list(&logprobs));
        }
        Value::Object(line)
    }
}
