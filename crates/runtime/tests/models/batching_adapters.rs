//! Requests with different adapters, or none, share passes and give what each gives alone.

use pollster::block_on;
use rullama_adapter::Adapter;
use rullama_engine::executor::Device;
use rullama_runtime::{
    Model, Scheduler,
    adapters::{Adapters, FactorType},
    generate::Finish,
    model::CacheType,
    scheduler::SchedulerOptions,
};

use crate::{
    adapters::adapter,
    batching::{Answer, Ask, Random, ask, greedy, is_soak, options, together},
    golden::{devices, model},
};

/// Adapters of the file's pairs with other factors: those that `keep` names, with at most so many ranks.
fn variant(file: &Adapter, seed: u64, most: usize, keep: impl Fn(usize) -> bool) -> Adapter {
    let mut random = Random(seed);
    let mut adapter = file.clone();
    let mut number = 0..;
    adapter.pairs.retain(|_| number.next().is_some_and(&keep));
    for pair in &mut adapter.pairs {
        let rank = pair.rank.min(most);
        let mut values = |count: usize| -> Vec<f32> {
            (0..count).map(|_| (random.below(2001) as f32 - 1000.0) / 4000.0).collect()
        };
        (pair.a, pair.b) = (values(rank * pair.columns), values(pair.rows * rank));
        pair.rank = rank;
    }
    adapter
}

/// Some adapters with different ranks and tensors, two of them combined with weights.
fn some_adapters(model: &Model, factors: FactorType) -> Vec<Adapters> {
    let file = adapter("micro-e2b-lora-F32");
    let [other, narrow, few] = [
        variant(&file, 1, usize::MAX, |_| true),
        variant(&file, 2, 1, |_| true),
        variant(&file, 3, usize::MAX, |i| i % 3 == 0),
    ];
    let attached: [&[(&Adapter, f32)]; 4] =
        [&[(&file, 1.0)], &[(&other, 0.5), (&file, -0.75)], &[(&narrow, 1.0)], &[(&few, 1.5)]];
    let attach = |adapters| block_on(model.attach(adapters, factors)).expect("they fit");
    attached.map(attach).to_vec()
}

fn alone(model: &Model, cache: CacheType, ask: &Ask, with: Option<&Adapters>) -> Answer {
    let mut scheduler = Scheduler::new(model, &options(cache)).expect("a scheduler");
    let one = Ask { arrives: 0, cancelled: None, ..ask.clone() };
    together(&mut scheduler, &[one], &[with.cloned()]).remove(0)
}

/// Random arrivals, some cancelled; log-probabilities of some requests are equal to the last bit.
fn check(model: &Model, factors: FactorType, seed: u64, count: usize) {
    let mut random = Random(seed);
    let sizes = (model.config().vocabulary, model.config().width);
    let adapters = some_adapters(model, factors);
    let asks: Vec<Ask> = (0..count).map(|_| ask(&mut random, sizes)).collect();
    let with: Vec<Option<Adapters>> =
        asks.iter().map(|_| adapters.get(random.below(adapters.len() + 1)).cloned()).collect();
    let mut scheduler = Scheduler::new(model, &options(CacheType::F16)).expect("a scheduler");
    let answers = together(&mut scheduler, &asks, &with);
    for (number, ((ask, with), answer)) in asks.iter().zip(&with).zip(&answers).enumerate() {
        let wanted = alone(model, CacheType::F16, ask, with.as_ref());
        let what = format!("request {number} of seed {seed} on {}: {ask:?}", model.device().name());
        if answer.done().finish == Finish::Cancelled {
            assert!(
                wanted.tokens.starts_with(&answer.tokens),
                "{what}: {answer:?}, not {wanted:?}"
            );
        } else {
            assert_eq!(answer.clone().without_cached(), wanted.without_cached(), "{what}");
        }
    }
}

#[test]
fn any_mix_of_adapters_gives_what_each_gives_alone_on_the_cpu() {
    let model = model("micro-e2b-Q8_0", &Device::Cpu);
    check(&model, FactorType::F32, 21, if is_soak() { 48 } else { 16 });
}

#[test]
fn any_mix_of_adapters_gives_what_each_gives_alone_on_a_gpu() {
    for device in devices().into_iter().filter(|device| matches!(device, Device::Gpu(_))) {
        let count = if is_soak() { 30 } else { 10 };
        check(&model("micro-e2b-Q8_0", &device), FactorType::F16, 22, count);
    }
}

/// So many requests, of which each has the adapters of its number, or none: their answers and the decode passes they took.
fn passes(model: &Model, with: &[Option<Adapters>]) -> (Vec<Answer>, u64) {
    let asks: Vec<Ask> = (0..with.len() as u32)
        .map(|i| greedy((0..20).map(|j| 5 + (i * 31 + j * 7) % 150).collect(), 8))
        .collect();
    let options = SchedulerOptions { drafts: 0, in_flight: 1, ..options(CacheType::F32) };
    let mut scheduler = Scheduler::new(model, &options).expect("a scheduler");
    let answers = together(&mut scheduler, &asks, with);
    for answer in &answers {
        assert_eq!(answer.tokens.len(), 8, "no request ends early");
    }
    (answers, scheduler.stats().decode_passes)
}

#[test]
fn requests_with_different_adapters_share_passes() {
    for device in devices() {
        let model = model("micro-e2b-Q8_0", &device);
        let adapters = some_adapters(&model, FactorType::F32);
        let with: Vec<Option<Adapters>> =
            (0..6).map(|i| adapters.get(i % (adapters.len() + 1)).cloned()).collect();
        let (plain, fewest) = passes(&model, &[None, None, None, None, None, None]);
        let (mixed, shared) = passes(&model, &with);
        assert_eq!(shared, fewest, "as many passes as without adapters, on {}", device.name());
        for (index, (plain, mixed)) in plain.iter().zip(&mixed).enumerate() {
            let same = plain.tokens == mixed.tokens;
            assert_eq!(same, with[index].is_none(), "request {index} on {}", device.name());
        }
    }
}

/// More adapters than a pass has slots for, and one whose rank would pad all others: passes of several pools.
#[test]
fn many_and_unequal_adapters_take_more_passes() {
    let model = model("micro-e2b-Q8_0", &Device::Cpu);
    let file = adapter("micro-e2b-lora-F32");
    let attach = |adapters: &[(&Adapter, f32)]| {
        block_on(model.attach(adapters, FactorType::F32)).expect("they fit")
    };
    let variants: Vec<Adapter> = (0..10).map(|i| variant(&file, i, 1, |_| true)).collect();
    let large: Vec<(&Adapter, f32)> =
        variants.iter().cycle().take(40).map(|it| (it, 0.1)).collect();
    let mut with: Vec<Option<Adapters>> =
        variants.iter().map(|variant| Some(attach(&[(variant, 1.0)]))).collect();
    with[0] = Some(attach(&large));
    let (answers, passes_taken) = passes(&model, &with);
    let (_, fewest) = passes(&model, &vec![None; with.len()]);
    assert!(passes_taken > fewest, "{passes_taken} passes, {fewest} without adapters");
    for (index, answer) in answers.iter().enumerate() {
        let mut one = vec![None; with.len()];
        one[index] = with[index].clone();
        assert_eq!(passes(&model, &one).0[index].tokens, answer.tokens, "request {index}");
    }
}
