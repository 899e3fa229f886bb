//! What goes wrong with one request concerns that one alone; many requests leave nothing behind.

use pollster::block_on;
use rullama_engine::{executor::Device, gpu::DeviceFacts};
use rullama_runtime::{
    Scheduler,
    generate::{Constraint, ConstraintError, Event, Prompt},
    model::CacheType,
    options::SamplingOptions,
    scheduler::{Request, RequestId, SchedulerOptions, SchedulerStats, Update},
};

use crate::{
    batching::{Answer, Ask, Random, alone, greedy, is_soak, options},
    golden::{devices, model},
};

fn request(ask: &Ask) -> Request {
    Request::new(Prompt::tokens(ask.tokens.clone()), ask.options.clone(), 0)
}

/// A constraint with a defect: it panics at its third token.
struct Defective(usize);

impl Constraint for Defective {
    fn prepare(&mut self) -> Result<(), ConstraintError> {
        self.0 += 1;
        assert!(self.0 < 3, "a defect");
        Ok(())
    }

    fn allows(&self, _: u32) -> bool {
        true
    }

    fn accept(&mut self, _: u32) -> Result<bool, ConstraintError> {
        Ok(false)
    }
}

#[test]
fn a_panic_in_one_request_ends_that_request_alone() {
    for device in devices() {
        let model = model("micro-e2b-Q8_0", &device);
        let mut scheduler = Scheduler::new(&model, &options(CacheType::F16)).expect("a scheduler");
        let asks = [greedy((5..45).collect(), 12), greedy((9..30).collect(), 12)];
        let before = scheduler.submit(request(&asks[0])).expect("it is taken");
        let constraint: Option<Box<dyn Constraint>> = Some(Box::new(Defective(0)));
        let defective =
            scheduler.submit(Request { constraint, ..request(&asks[0]) }).expect("it is taken");
        let after = scheduler.submit(request(&asks[1])).expect("it is taken");
        let (mut answers, mut failed) = ([Answer::default(), Answer::default()], Vec::new());
        while scheduler.has_work() {
            let mut sink = |id: RequestId, update| match update {
                Update::Failed(error) => failed.push((id, error.code(), error.to_string())),
                update if id == before => answers[0].take(update),
                update if id == after => answers[1].take(update),
                _ => {}
            };
            block_on(scheduler.step(&mut sink)).expect("a step");
        }
        let [(id, code, text)] = &failed[..] else { panic!("{failed:?}") };
        assert_eq!((*id, *code), (defective, "panicked"));
        assert!(text.contains("a defect"), "{text}");
        for (ask, answer) in asks.iter().zip(&answers) {
            let wanted = alone(&model, ask, CacheType::F16, None);
            assert_eq!(answer.clone().without_cached(), wanted, "{}", device.name());
        }
        let stats = scheduler.stats();
        assert_eq!((stats.running, stats.pages_reserved), (0, 0));
    }
}

/// A device that has no room for the KV pool gets a smaller one; what can never fit that is refused.
#[test]
fn a_pool_that_does_not_fit_the_device_is_halved() {
    const MAX_BYTES: u64 = 4 << 20;
    let Some(Device::Gpu(gpu)) = devices().into_iter().nth(1) else { panic!("no GPU") };
    let facts = DeviceFacts { buffer_bytes: MAX_BYTES, ..gpu.facts().clone() };
    let small = model("micro-e2b-Q8_0", &Device::Gpu(gpu.emulating(facts)));
    let layers = &small.config().layers;
    let token_bytes = layers.iter().map(|layer| layer.kv_heads * layer.head * 2).min();
    let pool = 3 * MAX_BYTES as usize / token_bytes.expect("layers");
    let settings = SchedulerOptions { pool: Some(pool), ..options(CacheType::F16) };
    let mut scheduler = Scheduler::new(&small, &settings).expect("a scheduler");
    let asks = [greedy((5..45).collect(), 6), greedy((9..30).collect(), 6)];
    let ids = asks.each_ref().map(|ask| scheduler.submit(request(ask)).expect("it is taken"));
    let before = scheduler.stats().pages;
    let mut answers = [Answer::default(), Answer::default()];
    while scheduler.has_work() {
        let mut sink = |id: RequestId, update| answers[usize::from(id == ids[1])].take(update);
        block_on(scheduler.step(&mut sink)).expect("a step");
    }
    let pages = scheduler.stats().pages;
    assert!(pages > 1 && pages <= before / 2, "{pages} of {before} pages");
    for (ask, answer) in asks.iter().zip(&answers) {
        assert_eq!(answer.clone().without_cached(), alone(&small, ask, CacheType::F16, None));
    }
}

/// Random requests, some cancelled while they wait, are prefilled or generate. `cargo xtask soak` sends ten times as many.
#[test]
fn many_requests_leave_memory_where_it_was() {
    let requests = if is_soak() { 10_000 } else { 1_000 };
    let model = model("micro-e2b-Q4_0", &Device::Cpu);
    let settings = SchedulerOptions {
        context: Some(32),
        chunk: 4,
        page: 4,
        pool: Some(128),
        sequences: 12,
        queue: 8,
        keep_prefixes: false,
        ..SchedulerOptions::default()
    };
    let mut scheduler = Scheduler::new(&model, &settings).expect("a scheduler");
    let at_rest = |scheduler: &Scheduler| {
        let SchedulerStats { running, waiting, pages_reserved, pages_used, .. } = scheduler.stats();
        [running, waiting, pages_reserved, pages_used]
    };
    assert_eq!(at_rest(&scheduler), [0; 4]);
    let mut random = Random(11);
    let (mut submitted, mut ended) = (0, 0);
    let mut ids: Vec<RequestId> = Vec::new();
    while submitted < requests || scheduler.has_work() {
        while submitted < requests && scheduler.waiting() < settings.queue && random.below(5) > 0 {
            let length = [1, 1, 1, 2, 4, 11][random.below(6)];
            let tokens = (0..length).map(|_| 4 + random.below(190) as u32).collect();
            let mut ask = greedy(tokens, 1 + random.below(3) as i32);
            if random.below(4) == 0 {
                ask.options = SamplingOptions { temperature: 1.0, top_k: 0, ..ask.options };
            }
            ids.push(scheduler.submit(request(&ask)).expect("there is room to wait"));
            submitted += 1;
        }
        if random.below(6) == 0 && !ids.is_empty() {
            scheduler.cancel(ids[ids.len() - 1 - random.below(ids.len().min(20))]);
        }
        let mut sink = |_: RequestId, update| match update {
            Update::Event(Event::Done(_)) => ended += 1,
            Update::Failed(error) => panic!("{error}"),
            _ => {}
        };
        block_on(scheduler.step(&mut sink)).expect("a step");
    }
    assert_eq!(ended, requests, "every request has one end");
    assert_eq!(at_rest(&scheduler), [0; 4]);
}

#[test]
fn a_lost_device_fails_what_runs_and_the_rest_goes_on_elsewhere() {
    let Some(Device::Gpu(gpu)) = devices().into_iter().nth(1) else { panic!("no GPU") };
    let name = "micro-e2b-Q8_0";
    let settings = SchedulerOptions { sequences: 1, ..options(CacheType::F16) };
    let lost = model(name, &Device::Gpu(gpu.clone()));
    let mut scheduler = Scheduler::new(&lost, &settings).expect("a scheduler");
    let ask = greedy((5..25).collect(), 10);
    let request = || Request::new(Prompt::tokens(ask.tokens.clone()), ask.options.clone(), 0);
    let first = scheduler.submit(request()).expect("room");
    let second = scheduler.submit(request()).expect("room to wait");
    block_on(scheduler.step(&mut |_, _| {})).expect("a step");
    gpu.destroy();
    let mut failed = Vec::new();
    let error = loop {
        let mut sink = |id: RequestId, update| {
            if let Update::Failed(error) = update {
                failed.push((id, error.code()));
            }
        };
        match block_on(scheduler.step(&mut sink)) {
            Ok(busy) => assert!(busy, "the device is gone"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), "device_lost", "{error}");
    assert_eq!(failed, [(first, "device_lost")]);
    assert_eq!((scheduler.running(), scheduler.waiting()), (0, 1));
    let again = model(name, &Device::Cpu);
    scheduler.restart(&again).expect("a scheduler");
    let mut answer = Answer::default();
    let mut sink = |id, update| {
        assert_eq!(id, second);
        answer.take(update);
    };
    while block_on(scheduler.step(&mut sink)).expect("a step") {}
    assert_eq!(answer.clone().without_cached(), alone(&again, &ask, CacheType::F16, None));
}
