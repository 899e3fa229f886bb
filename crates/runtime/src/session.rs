//! A session: tokens and KV caches. Several sessions share one model.
//! Prefill passes write all tokens but the last to the KV caches; the last token goes through a decode pass, which computes logits or
//! samples the next token.
//!
//! The context is a hard limit: a prompt that does not fit is refused, a reply that reaches it ends.

mod draft;
mod gain;
mod lend;
mod lookup;
mod measure;
mod plans;
mod prepared;
mod save;
mod soft;
mod steps;
mod trace;

use std::collections::VecDeque;

use rullama_engine::executor::{Memory, Results};
use rullama_models::decoder::{Config, Decoder, Pass, adapted_decoder};

pub use draft::{DEFAULT_DRAFTS, DraftCounts, DraftOptions, DraftSource, DraftTrace, MAX_DRAFTS};
pub use lend::BatchKey;
pub(crate) use lookup::look_up;
pub(crate) use plans::SHORT_CONTEXT;
pub(crate) use prepared::PreparedPass;
pub use soft::Media;
pub(crate) use soft::{Known, MediaDigest, check_adapters, is_soft};
pub use steps::DeviceSampling;
pub(crate) use steps::{chunk, chunks, feeds_itself};
pub use trace::Tap;
pub(crate) use trace::{keep_tapped, tap};

use crate::{
    adapters::Adapters,
    error::RuntimeError,
    model::{CacheType, Model},
    session::{draft::Drafting, plans::Plans},
};

/// Default context of a session.
pub const DEFAULT_CONTEXT: usize = 4096;
/// Maximum tokens of a pass.
pub const MAX_TOKENS: usize = 512;
/// Maximum decode steps in flight; more would only delay a cancellation.
pub const MAX_IN_FLIGHT: usize = 64;

/// Options of a session.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Maximum tokens of prompt and reply together. Default: [`DEFAULT_CONTEXT`], or the trained context if that is smaller.
    pub context: Option<usize>,
    /// KV cache format.
    pub cache: CacheType,
    /// Maximum tokens of a pass.
    pub chunk: usize,
    /// Maximum soft tokens of an image, for models that need them in one pass; more than [`Self::chunk`] takes more memory.
    pub block: usize,
    /// Suppressed tokens, in addition to those of the file.
    pub suppress: Vec<u32>,
    /// Decode steps in flight on a GPU, at most [`MAX_IN_FLIGHT`].
    pub in_flight: usize,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            context: None,
            cache: CacheType::default(),
            chunk: MAX_TOKENS,
            block: 0,
            suppress: Vec::new(),
            in_flight: 3,
        }
    }
}

impl SessionOptions {
    /// The options with every size clamped to the context.
    fn bounded(&self, context: usize) -> Self {
        Self {
            chunk: self.chunk.clamp(1, context),
            block: self.block.min(context),
            in_flight: self.in_flight.clamp(1, MAX_IN_FLIGHT),
            ..self.clone()
        }
    }
}

/// A conversation with a model.
#[derive(Debug)]
pub struct Session {
    model: Model,
    options: SessionOptions,
    context: usize,
    ring: usize,
    memory: Memory,
    plans: Plans,
    tokens: Vec<u32>,
    /// Number of tokens in the KV caches.
    filled: usize,
    /// Highest position written since the caches were last empty: ring buffers have overwritten the oldest ones.
    written: usize,
    /// Decode steps in flight, oldest first.
    in_flight: VecDeque<Results>,
    /// How the steps in flight sample.
    in_flight_sampling: Option<DeviceSampling>,
    /// Images and audio among the tokens.
    soft: Known,
    /// Attached adapters.
    adapters: Option<Adapters>,
    /// Speculative decoding, if enabled.
    drafting: Option<Drafting>,
    /// Whether verification passes keep hidden states for a drafter.
    keeps_hidden: bool,
}

/// Ring buffer slots of sliding layers: the window plus the tokens of a pass.
pub(crate) fn ring_slots(config: &Config, context: usize, chunk: usize) -> usize {
    context.min(config.window.saturating_add(chunk))
}

/// Ring buffer slots for the longest pass of a session with these options.
pub(crate) fn ring(config: &Config, context: usize, options: &SessionOptions) -> usize {
    let SessionOptions { chunk, block, in_flight, .. } = options.bounded(context);
    let block = if sees_blocks(config) { block } else { 0 };
    ring_slots(config, context, chunk.max(in_flight).max(block).max(MAX_DRAFTS + 1))
}

/// Whether soft tokens of an image attend to each other bidirectionally: in models without per-layer inputs.
pub(crate) fn sees_blocks(config: &Config) -> bool {
    config.per_layer.is_none()
}

impl Session {
    pub(crate) fn new(model: &Model, options: &SessionOptions) -> Result<Self, RuntimeError> {
        let trained = model.config().context;
        let context = options.context.unwrap_or(DEFAULT_CONTEXT.min(trained));
        if context == 0 || context > trained {
            return Err(RuntimeError::BadContext { requested: context, trained });
        }
        model.config().check_cache(options.cache.into())?;
        let mut options = options.bounded(context);
        let ring = ring(model.config(), context, &options);
        if let Ok(tokenizer) = model.tokenizer() {
            options.suppress.extend(tokenizer.suppressed());
        }
        options.suppress.sort_unstable();
        options.suppress.dedup();
        Ok(Self {
            model: model.clone(),
            context,
            ring,
            memory: Memory::new(model.device()),
            plans: Plans::default(),
            options,
            tokens: Vec::new(),
            filled: 0,
            written: 0,
            in_flight: VecDeque::new(),
            in_flight_sampling: None,
            soft: Known::default(),
            adapters: None,
            drafting: None,
            keeps_hidden: false,
        })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// All tokens so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Maximum tokens of the session.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Number of tokens in the KV caches.
    pub fn cached(&self) -> usize {
        self.filled
    }

    /// Bytes of caches, activations and adapters on the GPU; sessions share adapters.
    pub fn gpu_bytes(&self) -> u64 {
        let adapters = self.adapters.as_ref().map_or(0, Adapters::gpu_bytes);
        let drafting = self.drafting.as_ref().map_or(0, Drafting::gpu_bytes);
        self.memory.gpu_bytes() + self.plans.gpu_bytes() + adapters + drafting
    }

    /// The attached adapters.
    pub fn adapters(&self) -> Option<&Adapters> {
        self.adapters.as_ref()
    }

    /// Attaches these adapters, or none. The tokens stay; the KV caches are discarded.
    ///
    /// # Errors
    /// If they are attached to another model.
    pub fn set_adapters(&mut self, adapters: Option<&Adapters>) -> Result<(), RuntimeError> {
        if let Some(adapters) = adapters {
            adapters.check(&self.model)?;
        }
        self.drop_in_flight();
        self.plans.clear();
        self.adapters = adapters.cloned();
        (self.filled, self.written) = (0, 0);
        Ok(())
    }

    /// The graph of a pass, with the adapters.
    fn graph(&self, pass: &Pass) -> Decoder {
        let adapted = self.adapters.as_ref().map(Adapters::adapted);
        adapted_decoder(&self.model.0.config, &self.model.0.catalog, pass, adapted)
    }

    /// Appends tokens; nothing is computed yet.
    ///
    /// # Errors
    /// If a token does not exist, soft tokens are out of order or the context is too short, in which case nothing is appended.
    pub fn extend(&mut self, tokens: &[u32]) -> Result<(), RuntimeError> {
        let count = self.model.config().vocabulary;
        if let Some(id) = tokens.iter().find(|id| !self.knows(**id)) {
            return Err(RuntimeError::NoSuchToken { id: *id, count });
        }
        self.check_order(tokens)?;
        let all = self.tokens.len() + tokens.len();
        if all > self.context {
            let trained = self.model.config().context;
            return Err(RuntimeError::ContextFull { tokens: all, context: self.context, trained });
        }
        if !tokens.is_empty() {
            self.drop_in_flight();
            self.tokens.extend(tokens);
        }
        Ok(())
    }

    /// Replaces the session's tokens and keeps the KV cache of the common prefix. Returns the number of cached tokens.
    ///
    /// # Errors
    /// If a token does not exist or the context is too short, in which case nothing changes.
    pub fn set_tokens(&mut self, tokens: &[u32]) -> Result<usize, RuntimeError> {
        let common = self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let old = self.tokens.split_off(common);
        if let Err(error) = self.extend(&tokens[common..]) {
            self.tokens.extend(old);
            return Err(error);
        }
        self.drop_in_flight();
        // The last token must go through a decode pass, for its logits.
        self.keep(common.min(tokens.len().saturating_sub(1)));
        Ok(self.filled)
    }

    /// Truncates the session to the first `length` tokens.
    pub fn rewind(&mut self, length: usize) {
        if length < self.tokens.len() {
            self.drop_in_flight();
            self.tokens.truncate(length);
            self.keep(length.saturating_sub(1));
        }
    }

    /// An independent copy of the session.
    ///
    /// # Errors
    /// If there is no memory for its KV caches.
    pub async fn fork(&self) -> Result<Self, RuntimeError> {
        Ok(Self {
            model: self.model.clone(),
            options: self.options.clone(),
            context: self.context,
            ring: self.ring,
            memory: self.memory.fork().await?,
            plans: Plans::default(),
            tokens: self.tokens.clone(),
            filled: self.filled,
            written: self.written,
            in_flight: VecDeque::new(),
            in_flight_sampling: None,
            soft: self.soft.clone(),
            adapters: self.adapters.clone(),
            drafting: self.drafting.as_ref().map(Drafting::fork),
            keeps_hidden: self.keeps_hidden,
        })
    }

    /// Truncates the KV caches to `length` tokens, or to none if a ring buffer has overwritten keys inside the window.
    fn keep(&mut self, length: usize) {
        if length >= self.filled {
            return;
        }
        // The next token, at position `length`, attends to the window before it.
        let oldest = (length + 1).saturating_sub(self.model.config().window);
        let lost = self.written.saturating_sub(self.ring);
        if oldest >= lost {
            self.filled = length;
        } else {
            self.filled = 0;
            self.written = 0;
        }
    }

    /// Discards the steps in flight.
    fn drop_in_flight(&mut self) {
        self.in_flight.clear();
        self.in_flight_sampling = None;
        if let Some(drafting) = &mut self.drafting {
            drafting.forget();
        }
    }
}
