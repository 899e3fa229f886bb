//! An engine that does what the prompt says, and remembers what it was told.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use futures_util::FutureExt as _;
use rullama_api::{
    ApiError, DoneReason, EmbeddingRequest, GenerationEvent, GenerationRequest, Input, KeepAlive,
    LoraScale, Options, PromptText, Stats, TokenLogprob,
    request::llamacpp::TokenizeRequest,
    response::llamacpp::{LoraAdapter, Metrics},
};
use rullama_chat::Content;
use rullama_server::engine::{
    Embedded, Engine, Events, LoadedModel, Pending, Rendered, ServedModel,
};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) requests: Mutex<Vec<GenerationRequest>>,
    pub(crate) loaded: Mutex<Vec<Arc<ServedModel>>>,
    pub(crate) scales: Mutex<Vec<LoraScale>>,
    /// Generations whose client left.
    pub(crate) cancelled: Arc<AtomicUsize>,
    /// Tells those that wait to go on.
    pub(crate) go: Arc<AtomicUsize>,
}

impl Fake {
    #[track_caller]
    pub(crate) fn last(&self) -> GenerationRequest {
        self.requests.lock().unwrap().last().expect("a request").clone()
    }
}

/// The last text of a request.
fn script(request: &GenerationRequest) -> String {
    match &request.input {
        Input::Chat(chat) => match &chat.conversation.messages.last().unwrap().content {
            Content::Text(text) => text.clone(),
            Content::Parts(parts) => parts.iter().filter_map(|part| part.text.clone()).collect(),
            _ => String::new(),
        },
        Input::Prompt(prompt) => match &prompt.prompts[0] {
            PromptText::Text(text) => text.clone(),
            PromptText::Tokens(tokens) => format!("{tokens:?}"),
        },
        Input::Load => String::new(),
    }
}

impl Engine for Fake {
    fn generate(&self, _: Arc<ServedModel>, request: GenerationRequest) -> Pending<Events> {
        self.requests.lock().unwrap().push(request.clone());
        let text = script(&request);
        if text == "refuse" {
            return async { Err(ApiError::ContextLength) }.boxed();
        }
        let (sender, events) = unbounded_channel();
        let (cancelled, go) = (Arc::clone(&self.cancelled), Arc::clone(&self.go));
        thread::spawn(move || {
            let play = Play { sender, request };
            if play.all(&text, &go).is_none() {
                cancelled.fetch_add(1, Ordering::SeqCst);
            }
        });
        async { Ok(events) }.boxed()
    }

    fn embed(&self, _: Arc<ServedModel>, request: EmbeddingRequest) -> Pending<Embedded> {
        let vector = |text: &PromptText| match text {
            PromptText::Text(text) => vec![text.len() as f32, 0.5],
            PromptText::Tokens(tokens) => vec![tokens.len() as f32, 0.5],
        };
        let vectors: Vec<_> = request.input.iter().map(vector).collect();
        let tokens = vectors.len() as u64;
        async move { Ok(Embedded { vectors, tokens, ..Embedded::default() }) }.boxed()
    }

    fn render(&self, _: Arc<ServedModel>, request: GenerationRequest) -> Pending<Rendered> {
        let prompt = format!("<|turn>{}<turn|>", script(&request));
        self.requests.lock().unwrap().push(request);
        async move { Ok(Rendered { tokens: prompt.len() as u64, prompt }) }.boxed()
    }

    fn tokenize(
        &self,
        _: Arc<ServedModel>,
        request: TokenizeRequest,
    ) -> Pending<Vec<(u32, Vec<u8>)>> {
        let tokens = request.content.bytes().map(|byte| (u32::from(byte), vec![byte])).collect();
        async { Ok(tokens) }.boxed()
    }

    fn detokenize(&self, _: Arc<ServedModel>, tokens: Vec<u32>) -> Pending<String> {
        let text = tokens.iter().filter_map(|token| char::from_u32(*token)).collect();
        async { Ok(text) }.boxed()
    }

    fn load(&self, model: Arc<ServedModel>, _: Options, _: Option<KeepAlive>) -> Pending<()> {
        self.loaded.lock().unwrap().push(model);
        async { Ok(()) }.boxed()
    }

    fn unload(&self, model: &str) -> Pending<()> {
        self.loaded.lock().unwrap().retain(|loaded| loaded.name != model);
        async { Ok(()) }.boxed()
    }

    fn parallel(&self) -> usize {
        3
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        let row = |model: &Arc<ServedModel>| LoadedModel {
            model: Arc::clone(model),
            size: 7,
            size_vram: 5,
            expires: None,
            context_length: 4096,
        };
        self.loaded.lock().unwrap().iter().map(row).collect()
    }

    fn adapters(&self, _: Arc<ServedModel>) -> Pending<Vec<LoraAdapter>> {
        let scale = self.scales.lock().unwrap().first().map_or(1.0, |scale| scale.scale);
        async move { Ok(vec![LoraAdapter { id: 0, path: "a.gguf".into(), scale }]) }.boxed()
    }

    fn set_adapters(&self, _: Arc<ServedModel>, scales: Vec<LoraScale>) -> Pending<()> {
        *self.scales.lock().unwrap() = scales;
        async { Ok(()) }.boxed()
    }

    fn metrics(&self) -> Metrics {
        Metrics { tokens_predicted_total: 42, ..Metrics::default() }
    }
}

/// One generation; `None` as soon as nobody listens.
struct Play {
    sender: UnboundedSender<GenerationEvent>,
    request: GenerationRequest,
}

impl Play {
    fn send(&self, event: GenerationEvent) -> Option<()> {
        self.sender.send(event).ok()
    }

    fn all(&self, text: &str, go: &AtomicUsize) -> Option<()> {
        if text == "wait" {
            while go.load(Ordering::SeqCst) == 0 {
                if self.sender.is_closed() {
                    return None;
                }
                thread::sleep(Duration::from_millis(2));
            }
        }
        let failed = || GenerationEvent::Failed(ApiError::Internal { message: "boom".into() });
        match text {
            "fail" => return self.send(failed()),
            "vanish" => return Some(()),
            _ => {}
        }
        self.send(GenerationEvent::Started { prompt_tokens: 12, cached_tokens: 8 })?;
        for choice in 0..self.request.choices() {
            self.choice(choice, text)?;
        }
        if text == "break" { self.send(failed()) } else { Some(()) }
    }

    fn choice(&self, choice: u32, text: &str) -> Option<()> {
        if self.request.think == Some(true) {
            self.send(GenerationEvent::Thinking { choice, text: "Hm.".into() })?;
        }
        let mut reason = DoneReason::Stop;
        match text {
            "forever" => loop {
                self.word(choice, "word ")?;
                thread::sleep(Duration::from_millis(2));
            },
            "call" => {
                let arguments = json!({ "city": "Oslo" }).as_object().unwrap().clone();
                let name = "weather".to_owned();
                self.send(GenerationEvent::ToolCall { choice, name, arguments })?;
                reason = DoneReason::ToolCalls;
            }
            "break" => return self.word(choice, "half"),
            "long" => reason = DoneReason::Length,
            "slow" => {
                for _ in 0..20 {
                    self.word(choice, "w ")?;
                    thread::sleep(Duration::from_millis(20));
                }
            }
            words => {
                for word in words.split_inclusive(' ') {
                    self.word(choice, word)?;
                }
            }
        }
        let stats = Stats { completion_tokens: 7, reasoning_tokens: 3, ..Stats::default() };
        self.send(GenerationEvent::Done { choice, reason, stats })
    }

    fn word(&self, choice: u32, text: &str) -> Option<()> {
        let logprob = TokenLogprob { token: text.into(), logprob: -0.5, ..TokenLogprob::default() };
        let logprobs = self.request.logprobs.map(|_| logprob).into_iter().collect();
        self.send(GenerationEvent::Text { choice, text: text.into(), logprobs })
    }
}
