//! What goes into a scheduler and what comes out.

use std::rc::Rc;

use crate::{
    adapters::Adapters,
    error::RuntimeError,
    generate::{Constraint, Event, Prompt},
    model::CacheType,
    options::SamplingOptions,
};

/// How a scheduler is set up.
#[derive(Debug, Clone)]
pub struct SchedulerOptions {
    /// Most tokens of a prompt and its completion; as for a session.
    pub context: Option<usize>,
    /// How KV memory keeps numbers.
    pub cache: CacheType,
    /// Most tokens of a prefill pass: a longer one is faster, and holds up the others for longer. Prompts share beginnings of whole chunks.
    pub chunk: usize,
    /// Tokens that are never chosen, beside those the file names.
    pub suppress: Vec<u32>,
    /// Most requests that run at once.
    pub sequences: usize,
    /// Most requests that wait.
    pub queue: usize,
    /// Tokens the KV pool holds, of all requests together; eight contexts without.
    pub pool: Option<usize>,
    /// Tokens of a page of the KV pool.
    pub page: usize,
    /// Whether beginnings of prompts are kept for other requests while there is memory.
    pub keep_prefixes: bool,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            context: None,
            cache: CacheType::default(),
            chunk: 256,
            suppress: Vec::new(),
            sequences: 16,
            queue: 256,
            pool: None,
            page: 64,
            keep_prefixes: true,
        }
    }
}

/// A prompt to complete.
pub struct Request {
    /// The prompt.
    pub prompt: Prompt,
    /// How tokens are chosen and when it ends.
    pub options: SamplingOptions,
    /// Start of the random numbers.
    pub seed: u32,
    /// What the answer is held to.
    pub constraint: Option<Box<dyn Constraint>>,
    /// Adapters to answer with.
    pub adapters: Option<Adapters>,
}

impl Request {
    /// A request without a constraint or adapters.
    pub fn new(prompt: Prompt, options: SamplingOptions, seed: u32) -> Self {
        Self { prompt, options, seed, constraint: None, adapters: None }
    }
}

/// Tells a request from others of its scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub(super) u64);

/// Something that happened to a request.
#[derive(Debug, Clone)]
pub enum Update {
    /// Its next token, before what the token says.
    Token(u32),
    /// A piece of its completion, or its end.
    Event(Event),
    /// It failed; nothing follows.
    Failed(Rc<RuntimeError>),
}
