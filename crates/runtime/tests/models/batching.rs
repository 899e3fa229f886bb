//! Requests that run together give what each gives alone.

use std::{collections::BTreeMap, rc::Rc};

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_runtime::{
    Model, RuntimeError, Scheduler, SoftTokens,
    adapters::{Adapters, FactorType},
    generate::{Done, Event, Finish, Generation, JsonFormat, Prompt},
    model::CacheType,
    options::SamplingOptions,
    scheduler::{Request, RequestId, SchedulerOptions, Update},
    session::{Media, SessionOptions},
};

use crate::{
    adapters::adapter,
    golden::{devices, model},
};

const CONTEXT: usize = 256;
const CHUNK: usize = 32;

/// A request of the tests: it can be made again.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) tokens: Vec<u32>,
    /// Images and audio in place of their placeholders.
    pub(crate) media: Vec<Media>,
    pub(crate) options: SamplingOptions,
    pub(crate) seed: u32,
    pub(crate) json: bool,
    /// The step it comes before.
    pub(crate) arrives: usize,
    /// How many of its updates come before it is cancelled.
    pub(crate) cancelled: Option<usize>,
}

impl Ask {
    pub(crate) fn prompt(&self) -> Prompt {
        Prompt { media: self.media.clone(), ..Prompt::tokens(self.tokens.clone()) }
    }
}

/// Random numbers that depend on the seed alone.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

/// A token that stands for soft ones; prompts have it nowhere else.
const PLACEHOLDER: u32 = 3;

/// An image or a recording of so many random rows; few contents, so that some prompts begin with the same.
pub(crate) fn medium(random: &mut Random, width: usize, count: usize) -> Media {
    let salt = random.below(2);
    let value = |i: usize| ((i * 37 + salt * 11) % 101) as f32 / 101.0 - 0.5;
    let rows = Rc::new(SoftTokens { count, values: (0..count * width).map(value).collect() });
    Media { placeholder: PLACEHOLDER, rows, whole: salt == 0 }
}

/// A random request, some with an image or a recording: greedy, drawn, or chosen by the host (penalties, log-probabilities, JSON); a third of them begin with the same tokens.
pub(crate) fn ask(random: &mut Random, (vocabulary, width): (usize, usize)) -> Ask {
    let length = 1 + random.below(90);
    let shared = random.below(3) == 0;
    let token = |random: &mut Random| (4 + random.below(vocabulary.min(200) - 4)) as u32;
    let mut tokens: Vec<u32> = Vec::new();
    if shared {
        tokens.extend((0..70).map(|i| 5 + i * 7 % 150));
    }
    tokens.extend((0..length).map(|_| token(random)));
    let count = 1 + random.below(30);
    let media = match random.below(4) {
        0 => vec![medium(random, width, count)],
        _ => Vec::new(),
    };
    for medium in &media {
        let at = random.below(tokens.len());
        let places = std::iter::repeat_n(medium.placeholder, medium.rows.count);
        tokens.splice(at..at, places);
    }
    let plain = SamplingOptions {
        temperature: 0.0,
        repeat_penalty: 1.0,
        num_predict: 1 + random.below(20) as i32,
        ..SamplingOptions::default()
    };
    let kind = random.below(5);
    let options = match kind {
        0 | 1 => plain,
        2 => SamplingOptions { temperature: 1.3, top_k: 40, top_p: 0.95, ..plain },
        3 => SamplingOptions { logprobs: true, top_logprobs: 5, ..plain },
        _ => SamplingOptions { temperature: 0.8, top_k: 0, top_p: 1.0, ..plain },
    };
    Ask {
        tokens,
        media,
        options,
        seed: random.below(1 << 20) as u32,
        json: kind == 4,
        arrives: random.below(12),
        cancelled: (random.below(6) == 0).then(|| random.below(6)),
    }
}

pub(crate) fn form(model: &Model) -> JsonFormat {
    JsonFormat::object(model.tokenizer().expect("words")).expect("a form")
}

/// The tokens and events of a completion.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) tokens: Vec<u32>,
    pub(crate) events: Vec<Event>,
    /// Tokens from memory, as told when it began.
    admitted: Option<usize>,
}

impl Answer {
    pub(crate) fn take(&mut self, update: Update) {
        match update {
            Update::Admitted { cached_tokens } => self.admitted = Some(cached_tokens),
            Update::Token(token) => self.tokens.push(token),
            Update::Event(event) => self.events.push(event),
            Update::Failed(error) => panic!("a request failed: {error}"),
        }
    }

    pub(crate) fn done(&self) -> Done {
        let done = self.events.iter().rev().find_map(|event| match event {
            Event::Done(done) => Some(*done),
            _ => None,
        });
        done.expect("an end")
    }

    /// Whether tokens came from memory is not part of an answer.
    pub(crate) fn without_cached(mut self) -> Self {
        self.admitted = None;
        for event in &mut self.events {
            if let Event::Done(done) = event {
                done.cached_tokens = 0;
            }
        }
        self
    }
}

/// What a session of its own answers.
pub(crate) fn alone(
    model: &Model,
    ask: &Ask,
    cache: CacheType,
    adapters: Option<&Adapters>,
) -> Answer {
    let options =
        SessionOptions { context: Some(CONTEXT), cache, chunk: CHUNK, ..SessionOptions::default() };
    let mut session = model.session(&options).expect("a session");
    session.set_adapters(adapters).expect("adapters of this model");
    let prompt = ask.prompt();
    let mut generation = match ask.json {
        false => Generation::new(&mut session, model, &prompt, &ask.options, ask.seed),
        true => {
            let form = form(model).constraint();
            Generation::constrained(&mut session, model, &prompt, &ask.options, ask.seed, form)
        }
    }
    .expect("it begins");
    let mut events = Vec::new();
    while let Some(event) = block_on(generation.next()).expect("an event") {
        events.push(event);
    }
    Answer { tokens: session.tokens()[ask.tokens.len()..].to_vec(), events, admitted: None }
}

pub(crate) fn options(cache: CacheType) -> SchedulerOptions {
    SchedulerOptions {
        context: Some(CONTEXT),
        cache,
        chunk: CHUNK,
        sequences: 12,
        pool: Some(6 * CONTEXT),
        page: 16,
        batch_invariant: Some(true),
        ..SchedulerOptions::default()
    }
}

/// What a scheduler answers to all of them.
pub(crate) fn together(
    scheduler: &mut Scheduler,
    asks: &[Ask],
    adapters: &[Option<Adapters>],
) -> Vec<Answer> {
    let model = scheduler.model().clone();
    let mut answers = vec![Answer::default(); asks.len()];
    let mut ids: BTreeMap<RequestId, usize> = BTreeMap::new();
    for step in 0.. {
        for (index, ask) in asks.iter().enumerate().filter(|(_, ask)| ask.arrives == step) {
            let request = Request {
                constraint: ask.json.then(|| form(&model).constraint()),
                adapters: adapters.get(index).cloned().flatten(),
                ..Request::new(ask.prompt(), ask.options.clone(), ask.seed)
            };
            ids.insert(scheduler.submit(request).expect("it is taken"), index);
        }
        let mut sink = |id, update| answers[ids[&id]].take(update);
        let busy = block_on(scheduler.step(&mut sink)).expect("a step");
        for (id, index) in &ids {
            if asks[*index].cancelled.is_some_and(|after| answers[*index].tokens.len() > after) {
                scheduler.cancel(*id);
            }
        }
        if !busy && asks.iter().all(|ask| ask.arrives <= step) && scheduler.running() == 0 {
            let mut rest = |id, update| answers[ids[&id]].take(update);
            if !block_on(scheduler.step(&mut rest)).expect("a step") {
                return answers;
            }
        }
        assert!(step < 5000, "requests end");
    }
    unreachable!("steps are counted")
}

fn check(model: &Model, cache: CacheType, seed: u64, count: usize) {
    let mut random = Random(seed);
    let sizes = (model.config().vocabulary, model.config().width);
    let asks: Vec<Ask> = (0..count).map(|_| ask(&mut random, sizes)).collect();
    let mut scheduler = Scheduler::new(model, &options(cache)).expect("a scheduler");
    let answers = together(&mut scheduler, &asks, &[]);
    assert_eq!((scheduler.running(), scheduler.waiting()), (0, 0));
    for (number, (ask, answer)) in asks.iter().zip(&answers).enumerate() {
        let wanted = alone(model, ask, cache, None);
        let what = format!("request {number} of seed {seed}, {cache:?}: {ask:?}");
        if answer.done().finish == Finish::Cancelled {
            assert!(ask.cancelled.is_some(), "{what}");
            assert!(
                wanted.tokens.starts_with(&answer.tokens),
                "{what}: {answer:?}, not {wanted:?}"
            );
        } else {
            assert_eq!(answer.clone().without_cached(), wanted, "{what}");
        }
    }
}

/// Whether `cargo xtask soak` runs the tests: with more requests than there is time for otherwise.
pub(crate) fn is_soak() -> bool {
    std::env::var_os("RULLAMA_SOAK").is_some()
}

#[test]
fn any_mix_of_requests_gives_what_each_gives_alone_on_the_cpu() {
    for (seed, name) in
        (1..).zip(["micro-e2b-Q8_0", "micro-moe-BF16", "micro-dense-BF16", "micro-e2b-Q4_0"])
    {
        let model = model(name, &Device::Cpu);
        check(&model, CacheType::F16, seed, if is_soak() { 48 } else { 16 });
    }
}

/// Kernels too compute rows apart: log-probabilities are equal to the last bit.
#[test]
fn any_mix_of_requests_gives_what_each_gives_alone_on_a_gpu() {
    for device in devices().into_iter().filter(|device| matches!(device, Device::Gpu(_))) {
        let more = if is_soak() { 3 } else { 1 };
        let e2b = model("micro-e2b-Q8_0", &device);
        check(&e2b, CacheType::F32, 7, 10 * more);
        check(&e2b, CacheType::F16, 8, 7 * more);
        check(&model("micro-moe-BF16", &device), CacheType::F16, 9, 7 * more);
    }
}

pub(crate) fn greedy(tokens: Vec<u32>, limit: i32) -> Ask {
    let options = SamplingOptions {
        temperature: 0.0,
        repeat_penalty: 1.0,
        num_predict: limit,
        ..SamplingOptions::default()
    };
    Ask { tokens, media: vec![], options, seed: 0, json: false, arrives: 0, cancelled: None }
}

#[test]
fn prompts_share_whole_chunks_and_answer_alike() {
    for device in devices() {
        let model = model("micro-e2b-Q8_0", &device);
        let tokens: Vec<u32> = (0..100).map(|i| 5 + i * 7 % 150).collect();
        let mut longer = tokens.clone();
        longer[80] = 9;
        let asks = [greedy(tokens, 12), Ask { arrives: 30, ..greedy(longer, 12) }];
        let mut scheduler = Scheduler::new(&model, &options(CacheType::F16)).expect("a scheduler");
        let answers = together(&mut scheduler, &asks, &[]);
        // Two chunks of 32 are alike, and whole.
        let cached = [0, 1].map(|i: usize| answers[i].done().cached_tokens);
        let admitted = [0, 1].map(|i: usize| answers[i].admitted);
        assert_eq!(admitted, cached.map(Some), "told when a request begins, too");
        assert_eq!(cached, [0, 64], "{}", device.name());
        for (ask, answer) in asks.iter().zip(&answers) {
            let wanted = alone(&model, ask, CacheType::F16, None);
            assert_eq!(answer.clone().without_cached(), wanted, "{}", device.name());
        }
    }
}

#[test]
fn requests_wait_for_memory_and_too_many_are_refused() {
    let model = model("micro-e2b-Q8_0", &Device::Cpu);
    let settings = SchedulerOptions { pool: Some(64), queue: 2, ..options(CacheType::F16) };
    let mut scheduler = Scheduler::new(&model, &settings).expect("a scheduler");
    let request = |length: u32, limit| {
        let ask = greedy((5..5 + length).collect(), limit);
        Request::new(Prompt::tokens(ask.tokens), ask.options, 0)
    };
    let error = scheduler.submit(request(60, 30)).expect_err("the pool holds 64 tokens");
    assert!(matches!(error, RuntimeError::KvPoolTooSmall { tokens: 90, holds: 64 }), "{error}");
    scheduler.submit(request(30, 10)).expect("room");
    scheduler.submit(request(30, 10)).expect("room to wait");
    let error = scheduler.submit(request(3, 3)).expect_err("two wait");
    assert!(matches!(error, RuntimeError::QueueFull { waiting: 2 }), "{error}");
    let mut ended = Vec::new();
    let mut most = 0;
    loop {
        let mut sink = |id: RequestId, update| {
            if let Update::Event(Event::Done(_)) = update {
                ended.push(id);
            }
        };
        let busy = block_on(scheduler.step(&mut sink)).expect("a step");
        most = most.max(scheduler.running());
        if !busy {
            break;
        }
    }
    assert_eq!((ended.len(), most), (2, 1), "both ended, one after the other");
    let error = scheduler.submit(request(CONTEXT as u32 + 1, 1)).expect_err("too long");
    assert!(matches!(error, RuntimeError::ContextFull { .. }), "{error}");
}

#[test]
fn a_cancelled_request_frees_its_memory_at_once() {
    let model = model("micro-e2b-Q8_0", &Device::Cpu);
    let settings = SchedulerOptions { pool: Some(64), ..options(CacheType::F16) };
    let mut scheduler = Scheduler::new(&model, &settings).expect("a scheduler");
    let request = || {
        let ask = greedy((5..35).collect(), 30);
        Request::new(Prompt::tokens(ask.tokens), ask.options, 0)
    };
    let first = scheduler.submit(request()).expect("room");
    let second = scheduler.submit(request()).expect("room to wait");
    block_on(scheduler.step(&mut |_, _| {})).expect("a step");
    assert_eq!((scheduler.running(), scheduler.waiting()), (1, 1));
    assert!(scheduler.cancel(first) && !scheduler.cancel(first));
    let mut told = Vec::new();
    block_on(scheduler.step(&mut |id, update| told.push((id, update)))).expect("a step");
    assert_eq!((scheduler.running(), scheduler.waiting()), (1, 0));
    let cancelled = told.iter().any(|(id, update)| {
        let done = |done: &Done| done.finish == Finish::Cancelled;
        *id == first && matches!(update, Update::Event(Event::Done(it)) if done(it))
    });
    assert!(cancelled, "{told:?}");
    assert!(scheduler.cancel(second));
    assert_eq!(scheduler.running(), 0);
}

#[test]
fn adapters_change_only_the_requests_that_have_them() {
    let file = adapter("micro-e2b-lora-F32");
    for device in devices() {
        let model = model("micro-e2b-Q8_0", &device);
        let adapters = block_on(model.attach(&[(&file, 1.0)], FactorType::F32)).expect("they fit");
        let asks: Vec<Ask> = (0..6)
            .map(|i| greedy((0..40).map(|j| 5 + (i * 31 + j * 7) % 150).collect(), 8))
            .collect();
        let with: Vec<Option<Adapters>> =
            (0..asks.len()).map(|i| (i % 2 == 0).then(|| adapters.clone())).collect();
        let fresh = || Scheduler::new(&model, &options(CacheType::F32)).expect("a scheduler");
        let answers = together(&mut fresh(), &asks, &with);
        for (index, ask) in asks.iter().enumerate() {
            let one = std::slice::from_ref(ask);
            let wanted = together(&mut fresh(), one, &with[index..=index]);
            assert_eq!(answers[index], wanted[0], "request {index} on {}", device.name());
            let session = alone(&model, ask, CacheType::F32, with[index].as_ref());
            assert_eq!(answers[index].tokens, session.tokens, "{index} on {}", device.name());
        }
    }
}
