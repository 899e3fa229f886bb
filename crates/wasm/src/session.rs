//! Sessions: one call generates a reply and reports events.

use std::cell::RefCell;

use js_sys::Function;
use rullama_chat::{Conversation, Message, ReplyPrefix, Tool};
use rullama_runtime::{
    Model,
    generate::{ChatOptions, Completion, Generation, Prompt, prompt_with},
    options::{SamplingOptions, resolve_seed},
    sampling::SamplingError,
    session::DraftOptions,
};
use serde::Deserialize;
use serde_json::{Value, json};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{
    adapters::{Choice, Library},
    batch::Batch,
    constraint::{PageConstraint, TokenConstraint},
    draft::drafted,
    error::Failure,
    events,
    media::MediaCache,
    options::parse,
    reply::{Reply, Script},
    source::Thrown,
    turns::Turns,
};

#[wasm_bindgen]
extern "C" {
    /// Milliseconds.
    #[wasm_bindgen(js_namespace = performance)]
    pub(crate) fn now() -> f64;
}

/// A conversation with a model.
#[wasm_bindgen]
pub struct Session {
    /// `None` while a call uses it; the client queues calls.
    inner: RefCell<Option<rullama_runtime::Session>>,
    model: Model,
    defaults: SamplingOptions,
    thrown: Thrown,
    memory: MediaCache,
    drafts: Option<DraftOptions>,
    adapters: Library,
    batch: Batch,
    pub(crate) turns: Turns,
}

/// What a session shares with its model.
pub(crate) struct SessionContext {
    pub(crate) thrown: Thrown,
    pub(crate) memory: MediaCache,
    pub(crate) drafts: Option<DraftOptions>,
    pub(crate) adapters: Library,
    pub(crate) batch: Batch,
    pub(crate) turns: Turns,
}

/// A request to generate. One of `messages`, `text` and `ids` is given.
#[derive(Deserialize)]
struct Request {
    messages: Option<Vec<Message>>,
    #[serde(default)]
    tools: Vec<Tool>,
    #[serde(default)]
    think: bool,
    /// Most tokens of thoughts.
    think_budget: Option<usize>,
    /// The beginning of the reply to `messages`.
    prefix: Option<ReplyPrefix>,
    text: Option<String>,
    ids: Option<Vec<u32>>,
    /// Numbers of the encoded images and audio of the messages, in order.
    #[serde(default)]
    media: Vec<u32>,
    /// Adapters to use.
    #[serde(default)]
    adapters: Vec<Choice>,
    /// Sampling options under Ollama's names.
    #[serde(default)]
    options: Value,
}

impl Request {
    fn prompt(&mut self, model: &Model, memory: &MediaCache) -> Result<Prompt, Failure> {
        if let Some(text) = &self.text {
            return Ok(Prompt::text(model, text)?);
        }
        if let Some(ids) = self.ids.take() {
            return Ok(Prompt::tokens(ids));
        }
        let conversation = Conversation {
            messages: self.messages.take().unwrap_or_default(),
            tools: std::mem::take(&mut self.tools),
            thinking: self.think,
            prefix: self.prefix.take(),
            ..Conversation::default()
        };
        let media = memory.get(&self.media)?;
        let mut prompt = prompt_with(model, &conversation, &media, ChatOptions::default())?;
        // Models without thinking ignore the request for it, and so its limit.
        let thinks = self.think && model.template()?.thinks();
        prompt.thought_limit = self.think_budget.filter(|_| thinks);
        Ok(prompt)
    }
}

impl Session {
    pub(crate) fn new(
        session: rullama_runtime::Session,
        defaults: SamplingOptions,
        shared: SessionContext,
    ) -> Self {
        let model = session.model().clone();
        let SessionContext { thrown, memory, drafts, adapters, batch, turns } = shared;
        let inner = RefCell::new(Some(session));
        Self { inner, model, defaults, thrown, memory, drafts, adapters, batch, turns }
    }

    /// The session, for one call.
    pub(crate) fn take(&self) -> Result<rullama_runtime::Session, Failure> {
        self.inner.borrow_mut().take().ok_or(Failure::Busy)
    }

    pub(crate) fn put(&self, session: rullama_runtime::Session) {
        *self.inner.borrow_mut() = Some(session);
    }
}

/// The model's default options overridden by a request's, and the seed.
pub(crate) fn seeded(
    defaults: &SamplingOptions,
    layer: &Value,
) -> Result<(SamplingOptions, u32), Failure> {
    let mut options = defaults.clone();
    options.apply(layer).map_err(|error: SamplingError| Failure::from(error))?;
    let entropy = (js_sys::Math::random() * 4_294_967_296.0) as u32;
    let seed = resolve_seed(options.seed, entropy);
    Ok((options, seed))
}

#[wasm_bindgen]
impl Session {
    /// Generates a reply and calls `each` with every event as JSON; generation ends if `each` returns true. The last event is
    /// `done`. A constraint is asked before each token of the reply.
    pub async fn generate(
        &self,
        request: String,
        each: Function,
        constraint: Option<TokenConstraint>,
    ) -> Result<(), JsValue> {
        let mut session = self.take()?;
        let begun = self.begin(&mut session, &request, constraint).await;
        let outcome = match begun {
            Ok(begun) => {
                let (returned, outcome) = self.run(session, begun, Script::new(each)).await;
                session = returned;
                outcome
            }
            Err(failure) => Err(failure),
        };
        self.put(session);
        Ok(outcome.map_err(|failure| self.thrown.or(failure))?)
    }

    /// All tokens so far.
    pub fn tokens(&self) -> Result<Vec<u32>, JsValue> {
        let session = self.take()?;
        let tokens = session.tokens().to_vec();
        self.put(session);
        Ok(tokens)
    }

    /// The session as bytes.
    pub async fn save(&self) -> Result<Vec<u8>, JsValue> {
        let mut session = self.take()?;
        let saved = session.save().await.map_err(Failure::from);
        self.put(session);
        Ok(saved?)
    }

    /// Restores a session that `save` returned; the same adapters must be in use.
    pub async fn restore(&self, saved: Vec<u8>) -> Result<(), JsValue> {
        let old = self.take()?;
        let restored = self.model.restore_with(old.adapters(), &saved).await.map_err(Failure::from);
        let drafting = restored.and_then(|mut session| {
            session.draft(self.drafts.clone())?;
            Ok(session)
        });
        match drafting {
            Ok(session) => self.put(session),
            Err(failure) => {
                self.put(old);
                return Err(failure.into());
            }
        }
        Ok(())
    }

    /// Bytes of caches and activations on the GPU; 0 while it generates.
    #[wasm_bindgen(js_name = gpuBytes)]
    pub fn gpu_bytes(&self) -> f64 {
        self.inner.borrow().as_ref().map_or(0, rullama_runtime::Session::gpu_bytes) as f64
    }
}

/// A reply before its first token.
struct Begun {
    completion: Completion,
    prompt_tokens: usize,
    seed: u32,
    /// Milliseconds.
    start: f64,
}

impl Session {
    /// Reads a request and gives the session its prompt.
    async fn begin(
        &self,
        session: &mut rullama_runtime::Session,
        request: &str,
        constraint: Option<TokenConstraint>,
    ) -> Result<Begun, Failure> {
        let start = now();
        let mut request: Request = parse(request)?;
        let (options, seed) = seeded(&self.defaults, &request.options)?;
        let prompt = request.prompt(&self.model, &self.memory)?;
        let adapters = self.adapters.load(&self.model, &request.adapters).await?;
        if session.adapters() != adapters.as_ref() {
            session.set_adapters(adapters.as_ref())?;
        }
        let model = &self.model;
        let generation = match constraint {
            None => Generation::new(session, model, &prompt, &options, seed)?,
            Some(constraint) => {
                let constraint = Box::new(PageConstraint::new(constraint));
                Generation::constrained(session, model, &prompt, &options, seed, constraint)?
            }
        };
        let completion = generation.into_completion();
        Ok(Begun { completion, prompt_tokens: prompt.tokens.len(), seed, start })
    }

    /// Generates a reply, alone or with those of other sessions, and reports its events.
    async fn run(
        &self,
        session: rullama_runtime::Session,
        begun: Begun,
        script: Script,
    ) -> (rullama_runtime::Session, Result<(), Failure>) {
        let Begun { completion, prompt_tokens, seed, start } = begun;
        let drafts = session.draft_counts();
        let reply = Reply::new(&self.model, script, prompt_tokens, start, self.turns.clone());
        let (session, mut reply) = self.batch.run(session, completion, reply).await;
        if let Some(done) = reply.done.take() {
            let used = (session.tokens().len(), session.context());
            let mut event = events::done(&done, reply.times, seed, used);
            event["usage"]["batchedTokens"] = json!(reply.batched_tokens);
            if let Some(drafted) = drafted(drafts, session.draft_counts()) {
                event["usage"]["drafts"] = drafted;
            }
            reply.script.emit(&event);
        }
        (session, reply.outcome())
    }
}
