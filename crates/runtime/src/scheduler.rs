//! Continuous batching: many requests on one model, a token of each in every pass.
//!
//! Requests wait in a bounded queue until the KV pool has room for all they may take. [`Scheduler::step`] prefills a chunk of one prompt and makes a
//! token for every request whose prompt is done; requests join and leave between steps. Rows are computed apart, so that a request's
//! tokens are the same alone and with any others.

mod decode;
mod passes;
mod request;

use std::{collections::VecDeque, rc::Rc};

use rullama_engine::{EngineError, gpu::Fence};

pub use request::{Request, RequestId, SchedulerOptions, Update};

use crate::{
    adapters::Adapters,
    error::RuntimeError,
    generate::Completion,
    kv_pool::{KvPool, SequencePages},
    model::Model,
};
use passes::Passes;

/// Receives what happens to requests.
pub type Sink<'a> = dyn FnMut(RequestId, Update) + 'a;

/// Runs many requests on one model.
pub struct Scheduler {
    options: SchedulerOptions,
    passes: Passes,
    pool: KvPool,
    queue: VecDeque<Waiting>,
    running: Vec<Running>,
    /// What has happened outside of a step.
    updates: Vec<(RequestId, Update)>,
    next_id: u64,
    /// The request that was prefilled last.
    prefilled: u64,
    /// The last prefill pass, where nothing else has waited for the device since.
    under_way: Option<Fence>,
}

/// A request that is not admitted yet.
struct Waiting {
    id: RequestId,
    tokens: Vec<u32>,
    /// Tokens of the prompt and the longest completion.
    most: usize,
    completion: Completion,
    adapters: Option<Adapters>,
}

/// A request with memory.
struct Running {
    id: RequestId,
    /// The prompt and what followed.
    tokens: Vec<u32>,
    /// How many of them are in the KV pool.
    filled: usize,
    pages: SequencePages,
    completion: Completion,
    /// Which adapters it has: see [`Passes::adapter_id`].
    adapter: u64,
}

impl Running {
    /// Whether all tokens but the last are in the KV pool.
    fn is_prefilled(&self) -> bool {
        self.filled + 1 >= self.tokens.len()
    }
}

impl Scheduler {
    /// A scheduler for a model; its KV pool is made when the first request runs.
    ///
    /// # Errors
    /// If the options are impossible for the model.
    pub fn new(model: &Model, options: &SchedulerOptions) -> Result<Self, RuntimeError> {
        let passes = Passes::new(model, options)?;
        let pool = KvPool::new(passes.shape(), model.config().window);
        Ok(Self {
            options: options.clone(),
            passes,
            pool,
            queue: VecDeque::new(),
            running: Vec::new(),
            updates: Vec::new(),
            next_id: 0,
            prefilled: 0,
            under_way: None,
        })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        self.passes.model()
    }

    /// Most tokens of a prompt and its completion.
    pub fn context(&self) -> usize {
        self.passes.context()
    }

    /// Requests that wait for memory.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Requests that have memory.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Bytes of the KV pool and of activations on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.passes.gpu_bytes()
    }

    /// Takes a request; [`Self::step`] tells what becomes of it.
    ///
    /// # Errors
    /// If it makes no sense, does not fit the context or the KV pool, or too many others wait.
    pub fn submit(&mut self, request: Request) -> Result<RequestId, RuntimeError> {
        let Request { prompt, options, seed, constraint, adapters } = request;
        let model = self.passes.model();
        if !prompt.media.is_empty() {
            return Err(RuntimeError::NotWithMedia { what: "be batched yet: use a session" });
        }
        let count = model.config().vocabulary;
        if let Some(id) = prompt.tokens.iter().find(|id| **id as usize >= count) {
            return Err(RuntimeError::NoSuchToken { id: *id, count });
        }
        let (context, tokens) = (self.context(), prompt.tokens.len());
        if tokens > context {
            let trained = model.config().context;
            return Err(RuntimeError::ContextFull { tokens, context, trained });
        }
        if let Some(adapters) = &adapters {
            adapters.check(model)?;
        }
        let limit = usize::try_from(options.num_predict).unwrap_or(context);
        let most = tokens.saturating_add(limit).min(context);
        self.pool.check(most)?;
        let completion = match constraint {
            None => Completion::new(model, &prompt, &options, seed)?,
            Some(form) => Completion::constrained(model, &prompt, &options, seed, form)?,
        };
        if self.queue.len() >= self.options.queue {
            return Err(RuntimeError::QueueFull { waiting: self.queue.len() });
        }
        self.next_id += 1;
        let id = RequestId(self.next_id);
        self.queue.push_back(Waiting { id, tokens: prompt.tokens, most, completion, adapters });
        Ok(id)
    }

    /// Ends a request and frees its memory at once; the next step tells its end. False if it has ended already.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        let queued = self.queue.iter().position(|waiting| waiting.id == id);
        if let Some(mut waiting) = queued.and_then(|index| self.queue.remove(index)) {
            waiting.completion.cancel();
            self.keep_events(id, &mut waiting.completion);
            return true;
        }
        let Some(index) = self.running.iter().position(|running| running.id == id) else {
            return false;
        };
        let mut running = self.remove(index);
        running.cancel();
        self.keep_events(id, &mut running);
        true
    }

    /// Prefills a chunk of one prompt and makes a token for every request whose prompt is done. Returns whether there is anything left to do.
    ///
    /// # Errors
    /// If the device is lost. All requests that ran have failed then; those that wait go on after [`Self::restart`].
    pub async fn step(&mut self, sink: &mut Sink<'_>) -> Result<bool, RuntimeError> {
        self.flush(sink);
        self.admit();
        let worked = self.work(sink).await;
        if let Err(error) = worked {
            self.fail_all(sink);
            return Err(error);
        }
        Ok(!self.queue.is_empty() || !self.running.is_empty() || !self.updates.is_empty())
    }

    /// Goes on with a model that was loaded again. Requests that ran have lost their memory and fail, and so do those with adapters, which belong to the
    /// model they were attached to.
    ///
    /// # Errors
    /// If the options are impossible for the model.
    pub fn restart(&mut self, model: &Model) -> Result<(), RuntimeError> {
        self.passes = Passes::new(model, &self.options)?;
        self.pool = KvPool::new(self.passes.shape(), model.config().window);
        self.under_way = None;
        for running in self.running.drain(..) {
            let lost = Rc::new(EngineError::DeviceLost.into());
            self.updates.push((running.id, Update::Failed(lost)));
        }
        let (failed, kept) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|waiting: &Waiting| waiting.adapters.is_some());
        self.queue = kept;
        for waiting in failed {
            let failed = Update::Failed(Rc::new(RuntimeError::OtherModelsAdapters));
            self.updates.push((waiting.id, failed));
        }
        Ok(())
    }

    async fn work(&mut self, sink: &mut Sink<'_>) -> Result<(), RuntimeError> {
        let prefilled = self.prefill_chunk(sink).await?;
        if self.decode(sink).await? {
            self.under_way = None;
            return Ok(());
        }
        // Nothing was read back: one pass is queued after the one under way.
        if prefilled {
            let queued = self.passes.fence()?;
            if let Some(before) = std::mem::replace(&mut self.under_way, queued) {
                before.wait().await?;
            }
        }
        Ok(())
    }

    /// Admits requests in the order they came, as long as there is memory.
    fn admit(&mut self) {
        while self.running.len() < self.options.sequences {
            let Some(first) = self.queue.front() else { return };
            let Some(mut pages) = self.pool.admit(first.most) else { return };
            let Some(waiting) = self.queue.pop_front() else { return };
            let Waiting { id, tokens, mut completion, adapters, .. } = waiting;
            let adapter = self.passes.adapter_id(adapters);
            let filled = self.pool.reuse(&mut pages, adapter, &tokens);
            completion.set_cached(filled);
            self.running.push(Running { id, tokens, filled, pages, completion, adapter });
        }
    }

    /// Prefills a chunk of the next request whose prompt is not done; false if there is none.
    async fn prefill_chunk(&mut self, sink: &mut Sink<'_>) -> Result<bool, RuntimeError> {
        let unfinished = |running: &&Running| !running.is_prefilled();
        let ids = || self.running.iter().filter(unfinished).map(|running| running.id.0);
        let next = ids().filter(|id| *id > self.prefilled).min().or_else(|| ids().min());
        let Some(next) = next else { return Ok(false) };
        self.prefilled = next;
        let index = self.running.iter().position(|running| running.id.0 == next);
        let Some(index) = index else { return Ok(false) };
        if let Err(error) = self.prefill(index).await {
            self.fail(&[RequestId(next)], error, sink)?;
        }
        Ok(true)
    }

    async fn prefill(&mut self, index: usize) -> Result<(), RuntimeError> {
        let running = &mut self.running[index];
        let chunk = self.passes.chunk(running.filled, running.tokens.len() - 1);
        let end = running.filled + chunk.count;
        self.pool.cover(&mut running.pages, end)?;
        let tokens = &running.tokens[running.filled..end];
        self.passes.prefill(running.adapter, chunk, tokens, running.filled, &running.pages).await?;
        running.filled = end;
        // Only what every prompt with this beginning would compute in the same passes is shared, so that sharing changes no bit.
        if chunk.is_full && self.options.keep_prefixes {
            self.pool.keep_prefix(&running.pages, running.adapter, &running.tokens[..end]);
        }
        Ok(())
    }

    /// Tells what happened outside of a step.
    fn flush(&mut self, sink: &mut Sink<'_>) {
        self.updates.drain(..).for_each(|(id, update)| sink(id, update));
    }

    fn keep_events(&mut self, id: RequestId, completion: &mut Completion) {
        while let Some(event) = completion.event() {
            self.updates.push((id, Update::Event(event)));
        }
    }

    /// Frees a request's memory.
    fn remove(&mut self, index: usize) -> Completion {
        let Running { pages, completion, adapter, .. } = self.running.remove(index);
        self.pool.release(pages);
        let used = self.running.iter().any(|running| running.adapter == adapter);
        if !used && self.passes.forget(adapter) {
            self.pool.forget(adapter);
        }
        completion
    }

    /// Fails some requests, or hands the error on where it concerns the device and so all of them.
    fn fail(
        &mut self,
        ids: &[RequestId],
        error: RuntimeError,
        sink: &mut Sink<'_>,
    ) -> Result<(), RuntimeError> {
        let of_device = |error: &EngineError| {
            matches!(
                error,
                EngineError::DeviceLost | EngineError::Refused { .. } | EngineError::Timeout
            )
        };
        if matches!(&error, RuntimeError::Engine(error) if of_device(error)) {
            return Err(error);
        }
        let error = Rc::new(error);
        for id in ids {
            let index = self.running.iter().position(|running| running.id == *id);
            if let Some(index) = index {
                self.remove(index);
                sink(*id, Update::Failed(Rc::clone(&error)));
            }
        }
        Ok(())
    }

    /// Fails everything that runs: the device is lost.
    fn fail_all(&mut self, sink: &mut Sink<'_>) {
        while !self.running.is_empty() {
            let id = self.running[0].id;
            self.remove(0);
            sink(id, Update::Failed(Rc::new(EngineError::DeviceLost.into())));
        }
        self.under_way = None;
    }
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (waiting, running) = (self.waiting(), self.running());
        f.debug_struct("Scheduler").field("waiting", &waiting).field("running", &running).finish()
    }
}
