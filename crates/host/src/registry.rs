//! The models in memory: who is loaded, who is idle, and who goes when memory is needed.

use std::{
    collections::HashMap,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use rullama_api::{ApiError, KeepAlive, Timestamp, response::llamacpp::Metrics};
use rullama_server::engine::{LoadedModel, ServedModel};

use crate::{
    HostOptions,
    job::{Job, Task},
    load,
};

/// A pause while all loaded models are busy.
const BUSY: Duration = Duration::from_millis(20);

/// Stack of a model's thread: grammars of requests are compiled recursively.
const STACK: usize = 64 << 20;

/// All models, and what their threads share.
pub(crate) struct Registry {
    pub(crate) options: HostOptions,
    models: Mutex<HashMap<String, Entry>>,
    /// Held while a model is loaded: one at a time.
    loading: Mutex<()>,
    pub(crate) metrics: Mutex<Metrics>,
}

/// A model with a thread.
struct Entry {
    number: u64,
    model: Arc<ServedModel>,
    /// The context that a request has chosen.
    wanted_context: Option<usize>,
    jobs: Sender<Message>,
    status: Arc<Status>,
}

enum Message {
    Job(Job),
    Unload,
}

/// What a model's thread tells about itself.
pub(crate) struct Status {
    state: Mutex<State>,
    /// Told when the thread has ended and its memory is free.
    gone: Condvar,
}

struct State {
    /// Jobs that wait or run.
    active: usize,
    keep_alive: KeepAlive,
    /// Since when nothing is active.
    idle_since: Option<Instant>,
    vram: u64,
    size: u64,
    context: usize,
    is_loaded: bool,
    is_gone: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Status {
    fn new(keep_alive: KeepAlive) -> Self {
        let state = State {
            active: 0,
            keep_alive,
            idle_since: None,
            vram: 0,
            size: 0,
            context: 0,
            is_loaded: false,
            is_gone: false,
        };
        Self { state: Mutex::new(state), gone: Condvar::new() }
    }

    /// The model is in memory.
    pub(crate) fn loaded(&self, size: u64, vram: u64, context: usize) {
        let mut state = lock(&self.state);
        (state.size, state.vram, state.context, state.is_loaded) = (size, vram, context, true);
    }

    /// What it takes has changed.
    pub(crate) fn grown(&self, vram: u64) {
        let mut state = lock(&self.state);
        state.size = state.size.max(vram);
        state.vram = vram;
    }

    /// A job has ended.
    pub(crate) fn ended(&self) {
        let mut state = lock(&self.state);
        state.active = state.active.saturating_sub(1);
        if state.active == 0 {
            state.idle_since = Some(Instant::now());
        }
    }

    /// How long the thread may wait for the next job; none = for ever.
    fn patience(&self) -> Option<Duration> {
        let state = lock(&self.state);
        match (state.keep_alive, state.idle_since) {
            (KeepAlive::For(time), Some(since)) => Some(time.saturating_sub(since.elapsed())),
            (KeepAlive::For(time), None) => Some(time),
            (KeepAlive::Forever, _) => None,
        }
    }

    fn wait_until_gone(&self) {
        let mut state = lock(&self.state);
        while !state.is_gone {
            state = self.gone.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The end of a model's thread that gets jobs.
pub(crate) struct Inbox {
    registry: Arc<Registry>,
    name: String,
    number: u64,
    jobs: Receiver<Message>,
    pub(crate) status: Arc<Status>,
    is_leaving: bool,
}

impl Inbox {
    /// A job that is there already.
    pub(crate) fn next(&mut self) -> Option<Job> {
        loop {
            match self.jobs.try_recv() {
                Ok(Message::Job(job)) => return Some(job),
                Ok(Message::Unload) | Err(TryRecvError::Disconnected) => {
                    if self.is_leaving {
                        return None;
                    }
                    self.is_leaving = true;
                }
                Err(TryRecvError::Empty) => return None,
            }
        }
    }

    /// Waits for a job; `None` when the model is to be unloaded.
    pub(crate) fn wait(&mut self) -> Option<Job> {
        loop {
            if let Some(job) = self.next() {
                return Some(job);
            }
            if self.is_leaving {
                return None;
            }
            let message = match self.status.patience() {
                None => self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(time) => self.jobs.recv_timeout(time),
            };
            match message {
                Ok(Message::Job(job)) => return Some(job),
                Ok(Message::Unload) | Err(RecvTimeoutError::Disconnected) => self.is_leaving = true,
                Err(RecvTimeoutError::Timeout) => {
                    // Nobody can send while the list is locked: either a job is there, or none will come.
                    let mut models = lock(&self.registry.models);
                    match self.jobs.try_recv() {
                        Ok(Message::Job(job)) => return Some(job),
                        Ok(Message::Unload) => self.is_leaving = true,
                        Err(_) if self.status.patience() == Some(Duration::ZERO) => {
                            forget(&mut models, &self.name, self.number);
                            self.is_leaving = true;
                        }
                        Err(_) => {}
                    }
                }
            }
        }
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Ends a job that was not started.
    pub(crate) fn refuse(&self, job: Job, error: ApiError) {
        job.task.fail(error);
        self.status.ended();
    }

    /// Takes the model off the list and ends all jobs that wait with an error.
    pub(crate) fn close(&mut self, error: &ApiError) {
        forget(&mut lock(&self.registry.models), &self.name, self.number);
        while let Ok(message) = self.jobs.try_recv() {
            if let Message::Job(job) = message {
                self.refuse(job, error.clone());
            }
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        let message = "the model was unloaded before the request could run; try again".to_owned();
        self.close(&ApiError::Internal { message });
        lock(&self.status.state).is_gone = true;
        self.status.gone.notify_all();
    }
}

/// Takes a model off the list, unless another thread has taken its place.
fn forget(models: &mut HashMap<String, Entry>, name: &str, number: u64) {
    if models.get(name).is_some_and(|entry| entry.number == number) {
        models.remove(name);
    }
}

impl Registry {
    pub(crate) fn new(options: HostOptions) -> Self {
        Self {
            options,
            models: Mutex::default(),
            loading: Mutex::default(),
            metrics: Mutex::default(),
        }
    }

    /// Gives a task to the thread of a model, which is started where there is none.
    pub(crate) fn submit(
        self: &Arc<Self>,
        model: &Arc<ServedModel>,
        context: Option<usize>,
        keep_alive: Option<KeepAlive>,
        task: Task,
    ) {
        let mut job = Message::Job(Job { arrived: Instant::now(), task });
        let mut models = lock(&self.models);
        let mut before = None;
        if let Some(entry) = models.get(&model.name) {
            let has = |tokens| lock(&entry.status.state).context == tokens;
            let fits = entry.model.digest == model.digest
                && entry.model.size == model.size
                && (context == entry.wanted_context || context.is_none_or(has));
            if fits {
                let mut state = lock(&entry.status.state);
                state.active += 1;
                state.idle_since = None;
                state.keep_alive = keep_alive.unwrap_or(state.keep_alive);
                drop(state);
                match entry.jobs.send(job) {
                    Ok(()) => return,
                    // Its thread has ended; a new one takes its place.
                    Err(error) => job = error.0,
                }
            } else {
                // It ends when its requests do; the new one is loaded after it.
                let _ = entry.jobs.send(Message::Unload);
            }
            before = Some(Arc::clone(&entry.status));
        }
        let number =
            before.as_ref().and(models.get(&model.name)).map_or(0, |entry| entry.number + 1);
        let keep_alive = keep_alive.unwrap_or(self.options.keep_alive);
        let (jobs, receiver) = channel();
        let status = Arc::new(Status::new(keep_alive));
        lock(&status.state).active = 1;
        let inbox = Inbox {
            registry: Arc::clone(self),
            name: model.name.clone(),
            number,
            jobs: receiver,
            status: Arc::clone(&status),
            is_leaving: false,
        };
        // The receiver is alive in `inbox`.
        let _ = jobs.send(job);
        let entry =
            Entry { number, model: Arc::clone(model), wanted_context: context, jobs, status };
        models.insert(model.name.clone(), entry);
        drop(models);
        let model = Arc::clone(model);
        let start = move || {
            if let Some(before) = before {
                before.wait_until_gone();
            }
            load::run(inbox, &model, context);
        };
        // Without a thread the inbox is dropped, which ends its jobs with an error.
        let thread = thread::Builder::new().name("model".to_owned()).stack_size(STACK);
        let _ = thread.spawn(start);
    }

    /// Unloads a model as soon as its requests are done.
    pub(crate) fn unload(&self, name: &str) {
        if let Some(entry) = lock(&self.models).remove(name) {
            let _ = entry.jobs.send(Message::Unload);
        }
    }

    /// Unloads all models and waits for their threads, but not for ever.
    pub(crate) fn close(&self, patience: Duration) {
        let entries: Vec<Entry> = lock(&self.models).drain().map(|(_, entry)| entry).collect();
        for entry in &entries {
            let _ = entry.jobs.send(Message::Unload);
        }
        let end = Instant::now() + patience;
        for entry in entries {
            while !lock(&entry.status.state).is_gone && Instant::now() < end {
                thread::sleep(BUSY);
            }
        }
    }

    /// Only one model is loaded at a time.
    pub(crate) fn loading(&self) -> MutexGuard<'_, ()> {
        lock(&self.loading)
    }

    /// Unloads idle models, the one with the shortest keep-alive first, until another one of `need` bytes has room; waits while all are busy.
    /// Returns the bytes it may take.
    pub(crate) fn make_room(&self, name: &str, need: u64) -> Option<u64> {
        loop {
            let models = lock(&self.models);
            let others: Vec<&Entry> = models
                .values()
                .filter(|entry| entry.model.name != name && lock(&entry.status.state).is_loaded)
                .collect();
            let used: u64 = others.iter().map(|entry| lock(&entry.status.state).vram).sum();
            let left = self.options.open.gpu_memory.map(|all| all.saturating_sub(used));
            let has_room = left.is_none_or(|left| need <= left);
            if others.is_empty() || (has_room && others.len() < self.options.models.max(1)) {
                return left;
            }
            let idle = others.into_iter().filter(|entry| lock(&entry.status.state).active == 0);
            let shortest = idle.min_by_key(|entry| match lock(&entry.status.state).keep_alive {
                KeepAlive::For(time) => time,
                KeepAlive::Forever => Duration::MAX,
            });
            let chosen =
                shortest.map(|entry| (entry.model.name.clone(), Arc::clone(&entry.status)));
            drop(models);
            match chosen {
                Some((name, status)) => {
                    self.unload(&name);
                    status.wait_until_gone();
                }
                None => thread::sleep(BUSY),
            }
        }
    }

    /// The models in memory.
    pub(crate) fn loaded(&self) -> Vec<LoadedModel> {
        let models = lock(&self.models);
        let rows = models.values().filter_map(|entry| {
            let state = lock(&entry.status.state);
            let expires = match (state.keep_alive, state.idle_since) {
                (KeepAlive::Forever, _) => None,
                (KeepAlive::For(time), since) => {
                    let left = time.saturating_sub(since.map_or(Duration::ZERO, |at| at.elapsed()));
                    Some(Timestamp::from(SystemTime::now()).after(left))
                }
            };
            state.is_loaded.then(|| LoadedModel {
                model: Arc::clone(&entry.model),
                size: state.size,
                size_vram: state.vram,
                expires,
                context_length: state.context as u64,
            })
        });
        rows.collect()
    }

    /// Changes the counters.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Metrics)) {
        change(&mut lock(&self.metrics));
    }
}
