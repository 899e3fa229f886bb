//! One reply of a request: from the runtime's events to the server's.

use std::{cell::Cell, rc::Rc, time::Instant};

use rullama_api::{DoneReason, GenerationEvent, Stats, TokenLogprob, response::llamacpp::Metrics};
use rullama_runtime::{
    generate::{Done, Event, Finish},
    sampling::logprobs::{Logprobs, TokenLogprob as Likely},
    stop::StopStrings,
};
use rullama_tokenizer::{Render, Tokenizer};
use tokio::sync::mpsc::UnboundedSender;

/// What all replies of a request share.
pub(crate) struct Group {
    pub(crate) events: UnboundedSender<GenerationEvent>,
    pub(crate) arrived: Instant,
    /// When the engine took it up.
    pub(crate) taken: Instant,
    /// Tokens of all prompts.
    pub(crate) prompt_tokens: u64,
    /// How many of them were in the KV cache.
    pub(crate) cached_tokens: Cell<u64>,
    pub(crate) is_started: Cell<bool>,
    /// Replies that have not ended.
    pub(crate) left: Cell<usize>,
    /// The time it took to load the model for this request.
    pub(crate) load: std::time::Duration,
}

impl Group {
    fn send(&self, event: GenerationEvent) {
        // Nobody may listen any more; the next look at the channel ends the reply.
        let _ = self.events.send(event);
    }

    fn start(&self) {
        if !self.is_started.replace(true) {
            let cached_tokens = self.cached_tokens.get();
            self.send(GenerationEvent::Started {
                prompt_tokens: self.prompt_tokens,
                cached_tokens,
            });
        }
    }
}

/// How a reply is read.
pub(crate) struct Reading {
    pub(crate) stops: Vec<String>,
    /// Ends the reply after its first call.
    pub(crate) one_call: bool,
    /// Whether the tokens are wanted, with those of this prompt before them.
    pub(crate) context: Option<Vec<u32>>,
    /// Text to begin with.
    pub(crate) echo: Option<String>,
}

/// A reply in the making.
pub(crate) struct Choice {
    pub(crate) group: Rc<Group>,
    index: u32,
    stops: StopStrings,
    one_call: bool,
    context: Option<Vec<u32>>,
    echo: Option<String>,
    prompt_tokens: u64,
    /// Tokens since the last event.
    silent: u64,
    tokens: u64,
    reasoning: u64,
    logprobs: Vec<TokenLogprob>,
    calls: usize,
    first: Option<Instant>,
    is_done: bool,
}

impl Choice {
    pub(crate) fn new(
        group: &Rc<Group>,
        index: u32,
        prompt_tokens: usize,
        reading: Reading,
    ) -> Self {
        Self {
            group: Rc::clone(group),
            index,
            stops: StopStrings::new(reading.stops),
            one_call: reading.one_call,
            context: reading.context,
            echo: reading.echo,
            prompt_tokens: prompt_tokens as u64,
            silent: 0,
            tokens: 0,
            reasoning: 0,
            logprobs: Vec::new(),
            calls: 0,
            first: None,
            is_done: false,
        }
    }

    /// Whether the client is gone or the reply has ended, so that nothing more is to be computed.
    pub(crate) fn is_over(&self) -> bool {
        self.is_done || self.group.events.is_closed()
    }

    /// Whether its end was told.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// The engine has made a token.
    pub(crate) fn token(&mut self, id: u32) {
        self.begin();
        self.tokens += 1;
        self.silent += 1;
        if let Some(context) = &mut self.context {
            context.push(id);
        }
    }

    fn begin(&mut self) {
        if self.first.is_none() {
            self.first = Some(Instant::now());
            self.group.start();
            if let Some(text) = self.echo.take() {
                self.say(text);
            }
        }
    }

    /// Something was generated.
    pub(crate) fn event(&mut self, event: Event, tokenizer: &Tokenizer) {
        if self.is_done {
            return;
        }
        self.begin();
        match event {
            Event::Text(text) => self.text(&text),
            Event::Thinking(text) => self.thinking(text),
            Event::ToolCall { name, arguments, .. } => self.call(name, arguments),
            Event::BadCall { raw } => self.text(&raw),
            Event::Logprobs(logprobs) => self.logprobs.push(likely(&logprobs, tokenizer)),
            Event::Done(done) => self.end(&done),
        }
    }

    fn thinking(&mut self, text: String) {
        if self.is_done {
            return;
        }
        self.reasoning += std::mem::take(&mut self.silent);
        // Only those of the reply itself are reported.
        self.logprobs.clear();
        self.group.send(GenerationEvent::Thinking { choice: self.index, text });
    }

    fn text(&mut self, text: &str) {
        if self.is_done {
            return;
        }
        self.silent = 0;
        let step = self.stops.push(text);
        self.say(step.text);
        if let Some(stop) = step.matched {
            self.finish(DoneReason::StopSequence(stop), self.tokens);
        }
    }

    fn say(&mut self, text: String) {
        let logprobs = std::mem::take(&mut self.logprobs);
        if !(text.is_empty() && logprobs.is_empty()) {
            self.group.send(GenerationEvent::Text { choice: self.index, text, logprobs });
        }
    }

    fn call(&mut self, name: String, arguments: serde_json::Map<String, serde_json::Value>) {
        if self.is_done {
            return;
        }
        self.silent = 0;
        self.logprobs.clear();
        self.calls += 1;
        self.group.send(GenerationEvent::ToolCall { choice: self.index, name, arguments });
        if self.one_call {
            self.finish(DoneReason::ToolCalls, self.tokens);
        }
    }

    fn end(&mut self, done: &Done) {
        if self.is_done {
            return;
        }
        let rest = self.stops.finish();
        self.say(rest);
        let reason = match done.finish {
            Finish::Length | Finish::Context => DoneReason::Length,
            _ if self.calls > 0 => DoneReason::ToolCalls,
            _ => DoneReason::Stop,
        };
        self.finish(reason, done.answer_tokens as u64);
    }

    fn finish(&mut self, reason: DoneReason, tokens: u64) {
        self.is_done = true;
        self.tokens = tokens;
        let now = Instant::now();
        let first = self.first.unwrap_or(now);
        let stats = Stats {
            completion_tokens: tokens,
            reasoning_tokens: self.reasoning.min(tokens),
            load: self.group.load,
            prompt: first.saturating_duration_since(self.group.taken),
            eval: now.saturating_duration_since(first),
            total: now.saturating_duration_since(self.group.arrived),
            context: self.context.take().unwrap_or_default(),
        };
        self.group.left.set(self.group.left.get().saturating_sub(1));
        self.group.send(GenerationEvent::Done { choice: self.index, reason, stats });
    }

    /// The engine has failed.
    pub(crate) fn fail(&mut self, error: rullama_api::ApiError) {
        if !self.is_done {
            self.is_done = true;
            self.group.left.set(self.group.left.get().saturating_sub(1));
            self.group.send(GenerationEvent::Failed(error));
        }
    }

    /// Adds this reply to the counters.
    pub(crate) fn count(&self, metrics: &mut Metrics) {
        let now = Instant::now();
        let first = self.first.unwrap_or(now);
        let cached = self.group.cached_tokens.get().min(self.prompt_tokens);
        metrics.prompt_tokens_total += self.prompt_tokens - cached;
        metrics.prompt_seconds_total +=
            first.saturating_duration_since(self.group.taken).as_secs_f64();
        metrics.tokens_predicted_total += self.tokens;
        metrics.tokens_predicted_seconds_total +=
            now.saturating_duration_since(first).as_secs_f64();
        metrics.n_tokens_max = metrics.n_tokens_max.max(self.prompt_tokens + self.tokens);
    }
}

fn likely(logprobs: &Logprobs, tokenizer: &Tokenizer) -> TokenLogprob {
    let one = |likely: &Likely| {
        let bytes = tokenizer.piece(likely.id, Render::All).into_owned();
        let token = String::from_utf8_lossy(&bytes).into_owned();
        TokenLogprob { token, bytes, logprob: likely.logprob, top: Vec::new() }
    };
    TokenLogprob { top: logprobs.top.iter().map(one).collect(), ..one(&logprobs.chosen) }
}
