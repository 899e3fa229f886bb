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
    /// Most soft tokens of an image, in models that read all of them at once; as for a session.
    pub block: usize,
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
    /// Whether a request gets the same tokens in passes of more than 8 rows as alone. If not, those use GEMM tiles, which are faster with
    /// matrix units but round differently. `None`: unless the device has matrix units.
    pub batch_invariant: Option<bool>,
    /// Decode passes that are queued before the tokens of the first are read, on a GPU. A request that the host samples for, with a
    /// JSON schema for example, takes part in one of them at a time.
    pub in_flight: usize,
    /// Most tokens that are drafted from what was said before, while one request runs alone; 0 for none. As in a session, they change no token; passes are
    /// not queued ahead then.
    pub drafts: usize,
    /// Whether beginnings of prompts are kept for other requests while there is memory.
    pub keep_prefixes: bool,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            context: None,
            cache: CacheType::default(),
            block: 560,
            chunk: 128,
            suppress: Vec::new(),
            sequences: 32,
            queue: 256,
            pool: None,
            page: 64,
            batch_invariant: None,
            in_flight: 2,
            drafts: 0,
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

/// How busy a scheduler is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedulerStats {
    /// Requests that have memory.
    pub running: usize,
    /// Requests that wait for memory.
    pub waiting: usize,
    /// Tokens of a page of the KV pool.
    pub page_tokens: usize,
    /// Pages that running requests hold or may still take.
    pub pages_reserved: usize,
    /// Pages that hold tokens: of running requests, or of beginnings of prompts that are kept for later ones.
    pub pages_used: usize,
    /// All pages.
    pub pages: usize,
    /// Bytes of the KV pool and of activations on the GPU.
    pub gpu_bytes: u64,
    /// Decode passes so far, each with a token of one or more requests.
    pub decode_passes: u64,
}

/// How far a request is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those of them that an earlier request had computed.
    pub cached_tokens: usize,
    /// Those of them that are in the KV pool.
    pub prefilled_tokens: usize,
    /// Tokens of the completion so far.
    pub completion_tokens: usize,
}

/// Something that happened to a request.
#[derive(Debug, Clone)]
pub enum Update {
    /// The request has its memory and begins to run. Sent a second time if the pool turns out to be too large for the device and the request has
    /// to wait for a smaller one.
    Admitted {
        /// Tokens of its prompt that were in the KV pool already.
        cached_tokens: usize,
    },
    /// Its next token; the event with its text follows.
    Token(u32),
    /// A piece of its completion, or its end.
    Event(Event),
    /// It failed; nothing follows.
    Failed(Rc<RuntimeError>),
}

impl Update {
    pub(super) fn failed(error: RuntimeError) -> Self {
        Self::Failed(Rc::new(error))
    }
}
