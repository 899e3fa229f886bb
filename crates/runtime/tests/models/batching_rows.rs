//! Passes of more rows than are computed batch-invariantly, and of several rows of one request.

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_runtime::{
    Model, Scheduler,
    generate::{Event, Prompt},
    model::CacheType,
    options::SamplingOptions,
    scheduler::{Request, SchedulerOptions},
};

use crate::{
    batching::{Answer, Ask, alone, greedy, options, together},
    golden::{devices, model},
};

/// Requests enough for passes of 16 and of 32 rows.
const REQUESTS: usize = 27;

fn asks(limit: i32, change: impl Fn(SamplingOptions) -> SamplingOptions) -> Vec<Ask> {
    let ask = |i: usize| {
        let length = 1 + i * 13 % 60;
        let tokens = (0..length).map(|j| (5 + (i * 31 + j * 7) % 150) as u32).collect();
        let ask = greedy(tokens, limit);
        // The last ones come when the first are about to end.
        let arrives = if i.is_multiple_of(3) { 4 } else { 0 };
        Ask { options: change(ask.options.clone()), arrives, ..ask }
    };
    (0..REQUESTS).map(ask).collect()
}

fn gemm(model: &Model) -> Scheduler {
    let settings = SchedulerOptions {
        batch_invariant: Some(false),
        sequences: REQUESTS,
        pool: Some(REQUESTS * 256),
        ..options(CacheType::F32)
    };
    Scheduler::new(model, &settings).expect("a scheduler")
}

/// The CPU reference computes every row by itself, however many there are.
#[test]
fn more_than_eight_rows_give_what_each_gives_alone_on_the_cpu() {
    for name in ["micro-e2b-Q8_0", "micro-moe-BF16"] {
        let model = model(name, &Device::Cpu);
        let asks = asks(8, |options| options);
        let answers = together(&mut gemm(&model), &asks, &[]);
        for (ask, answer) in asks.iter().zip(&answers) {
            assert_eq!(
                answer.clone().without_cached(),
                alone(&model, ask, CacheType::F32, None),
                "{name}"
            );
        }
    }
}

/// Log-probabilities of the first token: all rows of a pass have the same inputs as alone.
#[test]
fn more_than_eight_rows_differ_by_rounding_alone_on_a_gpu() {
    // GEMM tiles may round activations to f16, and logits are at most 30 (their soft cap).
    const TOLERANCE: f32 = 30.0 / 2048.0;
    for device in devices().into_iter().filter(|device| matches!(device, Device::Gpu(_))) {
        for name in ["micro-e2b-Q8_0", "micro-moe-BF16"] {
            let model = model(name, &device);
            let asks =
                asks(1, |options| SamplingOptions { logprobs: true, top_logprobs: 0, ..options });
            let answers = together(&mut gemm(&model), &asks, &[]);
            for (ask, answer) in asks.iter().zip(&answers) {
                let wanted = first_logprob(&alone(&model, ask, CacheType::F32, None));
                let got = first_logprob(answer);
                assert!((got - wanted).abs() <= TOLERANCE, "{name}: {got}, not {wanted}: {ask:?}");
            }
            // Tokens that the device chooses and keeps for the next pass, whose rows join and leave.
            let asks = self::asks(8, |options| options);
            for (ask, answer) in asks.iter().zip(together(&mut gemm(&model), &asks, &[])) {
                let end = answer.done();
                assert!(end.answer_tokens == answer.tokens.len(), "{name}: {end:?}, {ask:?}");
            }
        }
    }
}

fn first_logprob(answer: &Answer) -> f32 {
    let found = answer.events.iter().find_map(|event| match event {
        Event::Logprobs(logprobs) => Some(logprobs.chosen.logprob),
        _ => None,
    });
    found.expect("log-probabilities")
}

/// Where a reply repeats itself, several tokens come from one pass, and all are what they are without drafts.
#[test]
fn a_request_that_runs_alone_may_draft() {
    for device in devices() {
        let model = model("micro-e2b-Q8_0", &device);
        for temperature in [0.0, 1.5] {
            let mut ask = greedy((0..60).map(|i| 5 + i % 6).collect(), 60);
            ask.options.temperature = temperature;
            let settings = SchedulerOptions { drafts: 5, ..options(CacheType::F16) };
            let mut scheduler = Scheduler::new(&model, &settings).expect("a scheduler");
            let prompt = Prompt::tokens(ask.tokens.clone());
            let request = Request::new(prompt, ask.options.clone(), ask.seed);
            scheduler.submit(request).expect("it is taken");
            let (mut answer, mut steps) = (Answer::default(), 0);
            while scheduler.has_work() {
                let mut sink = |_, update| answer.take(update);
                block_on(scheduler.step(&mut sink)).expect("a step");
                steps += 1;
            }
            assert_eq!(
                answer.clone().without_cached(),
                alone(&model, &ask, CacheType::F16, None),
                "{}",
                device.name()
            );
            let repeats = temperature == 0.0;
            assert!(!repeats || steps < answer.tokens.len(), "{steps} steps: {answer:?}");
        }
    }
}
