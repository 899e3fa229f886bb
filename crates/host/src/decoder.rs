//! Models that generate token by token: many requests at once, with and without images or audio.

use std::{
    cell::Cell,
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    rc::Rc,
    time::{Duration, Instant},
};

use pollster::block_on;
use rullama::AdapterSet;
use rullama_api::{
    ApiError, Dialect, GenerationEvent, GenerationRequest, Input, Media, ToolChoice,
    request::llamacpp::TokenizeRequest,
};
use rullama_runtime::{
    MediaEncoders, Model, RuntimeError,
    generate::Constraint,
    model::hinted_options,
    options::{SamplingOptions, resolve_seed},
    scheduler::{Request, RequestId, Scheduler, Update},
};
use rullama_server::engine::Rendered;
use rullama_tokenizer::{Render, Special, Tokenizer};

use crate::{
    adapters::Attached,
    choice::{Choice, Group, Reading},
    error::of_runtime,
    grammar::Formats,
    job::{Job, Task, not_for_this_model},
    load::Place,
    media::Encoded,
    prompt::{Built, build, check_media},
    registry::Inbox,
};

/// A model at work.
pub(crate) struct Decoder<'i> {
    inbox: &'i mut Inbox,
    model: Model,
    scheduler: Scheduler,
    sampling: SamplingOptions,
    encoded: Encoded,
    formats: Formats,
    adapters: Attached,
    choices: HashMap<RequestId, Choice>,
    /// How long loading took, until the first request has been told.
    load_time: Duration,
}

impl<'i> Decoder<'i> {
    pub(crate) fn new(
        inbox: &'i mut Inbox,
        model: Model,
        adapters: AdapterSet,
        towers: Vec<Rc<dyn rullama_source::ByteSource>>,
        place: &Place,
    ) -> Result<Self, ApiError> {
        let options = inbox.registry().options.clone();
        let failed = |error: RuntimeError| of_runtime(&error);
        let scheduler = options.scheduler(&model, place.context).map_err(failed)?;
        let names = adapter_names(place, &options.open.adapters);
        let bytes = model.gpu_bytes() + scheduler.stats().gpu_bytes;
        inbox.status.loaded(place.size.max(bytes), bytes, scheduler.context());
        Ok(Self {
            sampling: hinted_options(model.gguf()).0,
            encoded: Encoded::new(MediaEncoders::new(&model, towers)),
            formats: Formats::default(),
            adapters: Attached::new(&model, adapters, names),
            choices: HashMap::new(),
            load_time: place.load_time,
            inbox,
            model,
            scheduler,
        })
    }

    /// Works on jobs until the model is unloaded or its device is lost.
    pub(crate) fn serve(mut self) {
        loop {
            let is_idle = self.choices.is_empty();
            let job = if is_idle { self.inbox.wait() } else { self.inbox.next() };
            match job {
                Some(job) => self.take(job),
                None if is_idle => return,
                None => {
                    if let Err(error) = self.step() {
                        self.lost(&error);
                        return;
                    }
                }
            }
        }
    }

    fn tokenizer(&self) -> Result<&Tokenizer, ApiError> {
        self.model.tokenizer().map_err(|error| of_runtime(&error))
    }

    fn take(&mut self, job: Job) {
        if job.task.is_abandoned() {
            self.inbox.status.ended();
            return;
        }
        let Job { arrived, task } = job;
        match task {
            Task::Generate { request, events } => {
                if let Err(error) = self.generate(&request, &events, arrived) {
                    let _ = events.send(GenerationEvent::Failed(error));
                    self.inbox.status.ended();
                }
                return;
            }
            Task::Render { request, reply } => drop(reply.send(self.render(&request))),
            Task::Tokenize { request, reply } => {
                let _ = reply.send(self.tokenizer().map(|words| tokenized(words, &request)));
            }
            Task::Detokenize { tokens, reply } => {
                let _ = reply.send(self.tokenizer().and_then(|words| detokenized(words, &tokens)));
            }
            Task::Adapters { reply } => drop(reply.send(Ok(self.adapters.list()))),
            Task::SetAdapters { scales, reply } => {
                let _ = reply.send(self.adapters.set(&scales));
            }
            Task::Load { reply } => drop(reply.send(Ok(()))),
            other @ Task::Embed { .. } => other.fail(not_for_this_model("compute embeddings")),
        }
        self.inbox.status.ended();
    }

    fn render(&mut self, request: &GenerationRequest) -> Result<Rendered, ApiError> {
        check_media(request)?;
        let media = block_on(self.encoded.all(media(request)))?;
        // Counting is allowed beyond the context.
        let mut request = request.clone();
        request.truncate = false;
        let built = build(&self.model, &request, &media, usize::MAX)?.into_iter().next();
        let built = built.ok_or(ApiError::ContextLength)?;
        Ok(Rendered { prompt: built.text, tokens: built.prompt.tokens.len() as u64 })
    }

    /// Starts a request: its images and audio are encoded, its prompts wait for the scheduler.
    fn generate(
        &mut self,
        request: &GenerationRequest,
        events: &tokio::sync::mpsc::UnboundedSender<GenerationEvent>,
        arrived: Instant,
    ) -> Result<(), ApiError> {
        check_media(request)?;
        let media = block_on(self.encoded.all(media(request)))?;
        let built = build(&self.model, request, &media, self.scheduler.context())?;
        self.submit(request, &built, events, arrived)
    }

    /// Submits all replies of a request; none of them runs if one cannot.
    fn submit(
        &mut self,
        request: &GenerationRequest,
        built: &[Built],
        events: &tokio::sync::mpsc::UnboundedSender<GenerationEvent>,
        arrived: Instant,
    ) -> Result<(), ApiError> {
        let options = self.options(request)?;
        let adapters = self.adapters.of_request(request.lora.as_deref())?;
        let group = Rc::new(self.group(request, built, events, arrived));
        let mut submitted = Vec::new();
        let mut all = || {
            let mut index = 0;
            for one in built {
                for _ in 0..request.n.max(1) {
                    let mut next = Request::new(one.prompt.clone(), options.clone(), 0);
                    next.seed = seed(request, index);
                    next.constraint = self.constraint(request, one)?;
                    next.adapters = adapters.clone();
                    let id = self.scheduler.submit(next).map_err(|error| of_runtime(&error))?;
                    let count = one.prompt.tokens.len();
                    let choice = Choice::new(&group, index, count, reading(request, one));
                    submitted.push((id, choice));
                    index += 1;
                }
            }
            Ok(())
        };
        let result: Result<(), ApiError> = all();
        if let Err(error) = result {
            for (id, _) in &submitted {
                self.scheduler.cancel(*id);
            }
            return Err(error);
        }
        self.choices.extend(submitted);
        Ok(())
    }

    fn group(
        &mut self,
        request: &GenerationRequest,
        built: &[Built],
        events: &tokio::sync::mpsc::UnboundedSender<GenerationEvent>,
        arrived: Instant,
    ) -> Group {
        Group {
            events: events.clone(),
            arrived,
            taken: Instant::now(),
            prompt_tokens: built.iter().map(|built| built.prompt.tokens.len() as u64).sum(),
            cached_tokens: Cell::new(0),
            is_started: Cell::new(false),
            left: Cell::new(request.choices() as usize),
            load: std::mem::take(&mut self.load_time),
        }
    }

    /// How the tokens of a request are chosen. Texts that end a reply are looked for in [`Choice`], which tells which one came.
    fn options(&self, request: &GenerationRequest) -> Result<SamplingOptions, ApiError> {
        let invalid = |message: String| ApiError::Invalid { message };
        let mut options = self.sampling.clone();
        let mut wanted = request.options.clone();
        wanted.stop = None;
        let layer = serde_json::to_value(&wanted).map_err(|error| invalid(error.to_string()))?;
        options.apply(&layer).map_err(|error| invalid(error.to_string()))?;
        options.stop.clear();
        options.logprobs = request.logprobs.is_some();
        options.top_logprobs = request.logprobs.unwrap_or(0);
        if request.tool_choice == ToolChoice::None && !request.tools().is_empty() {
            // Not declaring tools is not enough for models that have learned to call some.
            let template = self.model.template().map_err(|error| of_runtime(&error))?;
            options.suppress.extend(self.tokenizer()?.id_of(template.output().call_markers()[0]));
        }
        Ok(options)
    }

    fn constraint(
        &mut self,
        request: &GenerationRequest,
        built: &Built,
    ) -> Result<Option<Box<dyn Constraint>>, ApiError> {
        let failed = |error: RuntimeError| of_runtime(&error);
        let tokenizer = self.model.tokenizer().map_err(failed)?;
        if let Some(call) = &built.call {
            return self.formats.call(tokenizer, call).map(Some);
        }
        self.formats.constraint(tokenizer, &request.format)
    }

    /// One step of the scheduler.
    fn step(&mut self) -> Result<(), ApiError> {
        let over = |(id, choice): (&RequestId, &Choice)| choice.is_over().then_some(*id);
        let gone: Vec<RequestId> = self.choices.iter().filter_map(over).collect();
        for id in gone {
            self.scheduler.cancel(id);
            self.retire(id);
        }
        let mut updates = Vec::new();
        let stepped = block_on(self.scheduler.step(&mut |id, update| updates.push((id, update))));
        let busy = self.scheduler.running() as f64;
        self.inbox.registry().count(|metrics| {
            metrics.n_decode_total += 1;
            let share = 1.0 / metrics.n_decode_total as f64;
            metrics.n_busy_slots_per_decode += (busy - metrics.n_busy_slots_per_decode) * share;
        });
        for (id, update) in updates {
            self.on_update(id, update);
        }
        let stats = self.scheduler.stats();
        let usage = stats.pages_reserved as f64 / stats.pages.max(1) as f64;
        self.inbox.registry().count(|metrics| metrics.kv_cache_usage_ratio = usage);
        stepped.map(drop).map_err(|error| of_runtime(&error))
    }

    fn on_update(&mut self, id: RequestId, update: Update) {
        let Some(choice) = self.choices.get_mut(&id) else { return };
        match update {
            Update::Admitted { cached_tokens } => {
                let known = choice.group.cached_tokens.get();
                choice.group.cached_tokens.set(known.max(cached_tokens as u64));
            }
            Update::Token(token) => choice.token(token),
            Update::Event(event) => {
                if let Ok(tokenizer) = self.model.tokenizer() {
                    choice.event(event, tokenizer);
                }
            }
            Update::Failed(error) => choice.fail(of_runtime(&error)),
        }
        if choice.is_done() {
            // It may have ended before the scheduler knows, at a text that ends replies.
            self.scheduler.cancel(id);
            self.retire(id);
        }
    }

    /// Forgets a reply; with the last one of a request, the job has ended.
    fn retire(&mut self, id: RequestId) {
        if let Some(choice) = self.choices.remove(&id) {
            self.inbox.registry().count(|metrics| choice.count(metrics));
            if Rc::strong_count(&choice.group) == 1 {
                self.ended();
            }
        }
    }

    fn ended(&self) {
        let bytes =
            self.model.gpu_bytes() + self.scheduler.stats().gpu_bytes + self.encoded.gpu_bytes();
        self.inbox.status.grown(bytes);
        self.inbox.status.ended();
    }

    /// The device is lost: everything fails, and the next request loads the model again.
    fn lost(&mut self, error: &ApiError) {
        self.inbox.close(error);
        for (_, mut choice) in self.choices.drain() {
            choice.fail(error.clone());
        }
    }
}

/// The images and audio of a request.
fn media(request: &GenerationRequest) -> &[Media] {
    match &request.input {
        Input::Chat(chat) => &chat.media,
        Input::Prompt(prompt) => &prompt.media,
        Input::Load => &[],
    }
}

/// Replies to one request differ by their seeds.
fn seed(request: &GenerationRequest, index: u32) -> u32 {
    resolve_seed(request.options.seed.unwrap_or(-1), entropy()).wrapping_add(index)
}

/// How the reply to a prompt is read.
fn reading(request: &GenerationRequest, built: &Built) -> Reading {
    let is_generate = request.dialect == Dialect::Ollama
        && matches!(&request.input, Input::Prompt(prompt) if !prompt.raw);
    Reading {
        stops: request.options.stop.clone().unwrap_or_default(),
        one_call: !request.parallel_tool_calls,
        // Images and audio have no tokens that a client could send back.
        context: (is_generate && built.prompt.media.is_empty())
            .then(|| built.prompt.tokens.clone()),
        echo: request.echo.then(|| built.text.clone()),
    }
}

/// What the adapters are called: those of the store, then those of all models.
fn adapter_names(place: &Place, own: &[(std::path::PathBuf, f32)]) -> Vec<String> {
    let stored = match &place.location {
        rullama::Location::Store(files) => files.adapters.iter().map(|layer| &layer.path).collect(),
        _ => Vec::new(),
    };
    let own = own.iter().map(|(path, _)| path);
    stored.into_iter().chain(own).map(|path| path.display().to_string()).collect()
}

/// A text as tokens.
pub(crate) fn tokenized(tokenizer: &Tokenizer, request: &TokenizeRequest) -> Vec<(u32, Vec<u8>)> {
    let special = if request.parse_special { Special::Parse } else { Special::None };
    let begin = tokenizer.bos().filter(|_| request.add_special);
    let tokens = begin.into_iter().chain(tokenizer.encode(&request.content, special));
    tokens.map(|id| (id, tokenizer.piece(id, Render::All).into_owned())).collect()
}

/// Tokens as text.
pub(crate) fn detokenized(tokenizer: &Tokenizer, tokens: &[u32]) -> Result<String, ApiError> {
    let count = tokenizer.token_count();
    if let Some(id) = tokens.iter().find(|id| **id >= count) {
        let message = format!("there is no token {id}: the vocabulary has {count}");
        return Err(ApiError::Invalid { message });
    }
    Ok(tokenizer.decode(tokens, Render::All))
}

/// A number that differs from call to call.
pub(crate) fn entropy() -> u32 {
    (RandomState::new().hash_one(0) & u64::from(u32::MAX)) as u32
}
