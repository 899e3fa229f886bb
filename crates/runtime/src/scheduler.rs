//! Continuous batching: many requests on one model, a token of each in every pass.
//!
//! Requests wait in a bounded queue until the KV pool has room for all they may take. [`Scheduler::step`] prefills a chunk of one prompt and queues a
//! pass for the requests whose prompts are done; requests join and leave between steps. Rows are computed batch-invariantly, so that a
//! request's tokens are the same alone and with any others.

mod adapters;
mod decode;
mod drafts;
mod faults;
mod passes;
mod prefill;
mod request;
mod running;
mod sessions;

use std::collections::VecDeque;

use rullama_engine::gpu::{Fence, profile::Table};

pub use request::{Progress, Request, RequestId, SchedulerOptions, SchedulerStats, Update};
pub use sessions::Returned;

use crate::{
    error::RuntimeError,
    generate::Completion,
    kv_pool::KvPool,
    model::Model,
    session::{Known, check_adapters, is_soft},
};
use decode::Round;
use faults::guarded;
use passes::Passes;
use running::{Content, Running, Waiting};

/// Receives what happens to requests.
pub type Sink<'a> = dyn FnMut(RequestId, Update) + 'a;

/// Runs many requests on one model.
///
/// [`Self::submit`] takes a request, [`Self::step`] does some work and tells what became of the requests; call it as long as
/// [`Self::has_work`]. The thread that owns the model owns the scheduler; other threads send it requests through a channel.
pub struct Scheduler {
    options: SchedulerOptions,
    passes: Passes,
    pool: KvPool,
    queue: VecDeque<Waiting>,
    running: Vec<Running>,
    /// Slots of latest tokens that no request has.
    free_slots: Vec<u32>,
    /// Decode passes that are queued and not read yet, oldest first.
    rounds: VecDeque<Round>,
    /// What has happened outside of a step.
    updates: Vec<(RequestId, Update)>,
    next_id: u64,
    /// The request that was prefilled last.
    prefilled: u64,
    /// The last prefill pass, where nothing else has waited for the device since.
    under_way: Option<Fence>,
    /// Sessions of requests that have ended.
    returned: Vec<(RequestId, Returned)>,
    /// Decode passes so far.
    decode_passes: u64,
}

impl Scheduler {
    /// A scheduler for a model; its KV pool is made when the first request runs.
    ///
    /// # Errors
    /// If the options are impossible for the model.
    pub fn new(model: &Model, options: &SchedulerOptions) -> Result<Self, RuntimeError> {
        let passes = Passes::new(model, options)?;
        Ok(Self {
            pool: KvPool::new(passes.shape(), model.config().window),
            free_slots: passes.slots(),
            passes,
            options: options.clone(),
            queue: VecDeque::new(),
            running: Vec::new(),
            rounds: VecDeque::new(),
            updates: Vec::new(),
            next_id: 0,
            prefilled: 0,
            under_way: None,
            returned: Vec::new(),
            decode_passes: 0,
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

    /// Whether [`Self::step`] has anything to do or to tell.
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty() || !self.running.is_empty() || !self.updates.is_empty()
    }

    /// Profiles the decode pass for so many requests with timestamps around every dispatch, on the inputs of its last run. `None` if it
    /// never ran, on the CPU, or while requests run, whose tokens it would change.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn profile(&self, rows: usize) -> Result<Option<Table>, RuntimeError> {
        if self.has_work() {
            return Ok(None);
        }
        self.passes.profile(rows).await
    }

    /// How busy it is.
    pub fn stats(&self) -> SchedulerStats {
        let (pages_reserved, pages_used, pages) = self.pool.usage();
        SchedulerStats {
            running: self.running.len(),
            waiting: self.queue.len(),
            page_tokens: self.passes.shape().page,
            pages_reserved,
            pages_used,
            pages,
            gpu_bytes: self.gpu_bytes(),
            decode_passes: self.decode_passes,
        }
    }

    /// How far a request is; `None` after its end.
    pub fn progress(&self, id: RequestId) -> Option<Progress> {
        if let Some(waiting) = self.queue.iter().find(|waiting| waiting.id == id) {
            let prompt_tokens = waiting.content.tokens.len();
            return Some(Progress { prompt_tokens, ..Progress::default() });
        }
        self.running.iter().find(|running| running.id == id).map(Running::progress)
    }

    /// Most tokens that a request may take of the KV pool: its prompt and its completion, which is known before it is admitted.
    pub fn needs(&self, prompt_tokens: usize, num_predict: i32) -> usize {
        let limit = usize::try_from(num_predict).unwrap_or(self.context());
        prompt_tokens.saturating_add(limit).min(self.context())
    }

    /// Takes a request; [`Self::step`] tells what becomes of it.
    ///
    /// # Errors
    /// If it makes no sense, does not fit the context or the KV pool, or too many others wait.
    pub fn submit(&mut self, request: Request) -> Result<RequestId, RuntimeError> {
        let Request { prompt, options, seed, constraint, adapters } = request;
        let config = self.passes.model().config();
        let count = config.vocabulary;
        if let Some(id) = prompt.tokens.iter().find(|id| **id as usize >= count) {
            return Err(RuntimeError::NoSuchToken { id: *id, count });
        }
        let (context, tokens) = (self.context(), prompt.tokens.len());
        if tokens > context {
            let trained = config.context;
            return Err(RuntimeError::ContextFull { tokens, context, trained });
        }
        if let Some(adapters) = &adapters {
            adapters.check(self.passes.model())?;
        }
        let content = self.content(&prompt.tokens, &prompt.media)?;
        if !content.media.is_empty() {
            check_adapters(adapters.as_ref())?;
        }
        let most = self.needs(tokens, options.num_predict);
        self.pool.check(most)?;
        let model = self.passes.model();
        let completion = guarded(|| match constraint {
            None => Completion::new(model, &prompt, &options, seed),
            Some(form) => Completion::constrained(model, &prompt, &options, seed, form),
        })?;
        if self.queue.len() >= self.options.queue {
            return Err(RuntimeError::QueueFull { waiting: self.queue.len() });
        }
        let id = self.next_id();
        self.queue.push_back(Waiting { id, content, most, completion, adapters, borrowed: None });
        Ok(id)
    }

    fn next_id(&mut self) -> RequestId {
        self.next_id += 1;
        RequestId(self.next_id)
    }

    /// The tokens of a prompt with its images and audio, whose blocks the sliding windows have room for.
    fn content(
        &self,
        tokens: &[u32],
        media: &[crate::session::Media],
    ) -> Result<Content, RuntimeError> {
        let mut soft = Known::default();
        let tokens = soft.soften(self.model().config(), tokens, media)?;
        if tokens.last().is_some_and(|id| is_soft(*id)) {
            return Err(RuntimeError::NotWithMedia { what: "end in one: add text after it" });
        }
        let media = soft.digests(&tokens);
        let content = Content { tokens, soft, media };
        let mut filled = 0;
        while !content.media.is_empty() && filled + 1 < content.tokens.len() {
            filled += self.passes.chunk(&content, filled)?.count;
        }
        Ok(content)
    }

    /// Ends a request and frees its memory at once; the next step tells its end. False if it has ended already.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        let queued = self.queue.iter().position(|waiting| waiting.id == id);
        if let Some(waiting) = queued.and_then(|index| self.queue.remove(index)) {
            let completion = self.drop_waiting(waiting);
            self.tell_cancelled(id, completion);
            return true;
        }
        let Some(index) = self.running.iter().position(|running| running.id == id) else {
            return false;
        };
        let completion = self.remove(index);
        self.tell_cancelled(id, completion);
        true
    }

    /// Prefills a chunk of one prompt, queues a pass for the requests whose prompts are done, and tells the tokens of an earlier one. Returns
    /// whether there is anything left to do.
    ///
    /// # Errors
    /// If the device is lost. All requests that ran have failed then; those that wait go on after [`Self::restart`].
    pub async fn step(&mut self, sink: &mut Sink<'_>) -> Result<bool, RuntimeError> {
        self.flush(sink);
        self.admit();
        self.flush(sink);
        if let Err(error) = self.work(sink).await {
            self.fail_all(sink);
            return Err(error);
        }
        Ok(self.has_work())
    }

    async fn work(&mut self, sink: &mut Sink<'_>) -> Result<(), RuntimeError> {
        self.copy_sessions(sink).await?;
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
        while let Some(first) = self.queue.front() {
            if let Err(error) = self.pool.check(first.most) {
                // The pool has become smaller since.
                if let Some(waiting) = self.queue.pop_front() {
                    self.updates.push((waiting.id, Update::failed(error)));
                    self.drop_waiting(waiting);
                }
                continue;
            }
            let Some(slot) = self.free_slots.last().copied() else { return };
            let Some(mut pages) = self.pool.admit(first.most) else { return };
            let Some(waiting) = self.queue.pop_front() else { return };
            self.free_slots.pop();
            let Waiting { id, content, most, mut completion, adapters, borrowed } = waiting;
            let adapter = self.passes.adapter_id(adapters.as_ref());
            let filled = match &borrowed {
                Some(borrowed) => borrowed.session.cached(),
                None => {
                    let key = content.key(adapter, content.tokens.len());
                    let filled = self.pool.reuse(&mut pages, key);
                    completion.set_cached(filled);
                    filled
                }
            };
            self.updates.push((id, Update::Admitted { cached_tokens: filled }));
            let running = Running {
                prompt_tokens: completion.prompt_tokens(),
                cached_tokens: filled,
                in_flight: 0,
                sampling: None,
                id,
                content,
                most,
                filled,
                pages,
                completion,
                adapters,
                adapter,
                slot,
                borrowed,
            };
            self.running.push(running);
        }
    }

    /// Tells what happened outside of a step.
    fn flush(&mut self, sink: &mut Sink<'_>) {
        self.updates.drain(..).for_each(|(id, update)| sink(id, update));
    }

    /// Frees a request's memory. Passes in flight may still write to its pages; the next owner of a page writes it after them.
    fn remove(&mut self, index: usize) -> Completion {
        let mut running = self.running.remove(index);
        self.copy_back(&mut running);
        let Running { id, pages, completion, adapter, slot, borrowed, .. } = running;
        self.give_back(id, borrowed);
        self.pool.release(pages);
        self.free_slots.push(slot);
        let used = self.running.iter().any(|running| running.adapter == adapter);
        if !used && self.passes.forget(adapter) {
            self.pool.forget(adapter);
        }
        if self.running.is_empty() {
            self.rounds.clear();
        }
        completion
    }

    /// Ends a request that has no memory.
    fn drop_waiting(&mut self, waiting: Waiting) -> Completion {
        self.give_back(waiting.id, waiting.borrowed);
        waiting.completion
    }
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (waiting, running) = (self.waiting(), self.running());
        f.debug_struct("Scheduler").field("waiting", &waiting).field("running", &running).finish()
    }
}
