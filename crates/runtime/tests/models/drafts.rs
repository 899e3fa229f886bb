//! Speculative decoding does not change the output; drafters against the reference.

use std::rc::Rc;

use pollster::block_on;
use rullama_engine::{
    executor::Device,
    gpu::{DeviceFacts, Tuning},
    ops::Draw,
};
use rullama_gguf::{DType, Gguf, Writer};
use rullama_runtime::{
    Drafter, Model, Session,
    model::TablePlace,
    session::{DeviceSampling, DraftCounts, DraftOptions, DraftSource, SessionOptions},
};
use rullama_source::MemorySource;
use rullama_testkit::golden;

use crate::golden::{Golden, devices, exact, model, model_with};

const TARGET: &str = "micro-e2b-BF16";
/// Generated tokens.
const TOKENS: usize = 20;

fn open(bytes: Vec<u8>) -> Gguf {
    let source = Rc::new(MemorySource::new("drafter.gguf", bytes));
    block_on(Gguf::open(source)).expect("the file opens")
}

fn plain_file() -> Gguf {
    open(golden("assistant/micro-assistant-BF16.gguf"))
}

/// The same drafter with token clusters.
fn clustered_file() -> Gguf {
    let gguf = plain_file();
    let masked = Golden::at("assistant/masked_embedding.safetensors");
    let file = gguf
        .metadata()
        .iter()
        .fold(Writer::new(), |file, entry| file.kv(entry.key.as_str(), entry.value.clone()));
    let file = file.kv("gemma4-assistant.centroid_intermediate_top_k", 5u32);
    let file = gguf.tensors().iter().fold(file, |file, tensor| {
        let bytes = block_on(gguf.read(tensor, 0..tensor.nbytes())).expect("its bytes");
        file.tensor(tensor.name(), tensor.dims(), tensor.dtype(), bytes)
    });
    let centroids = masked.bytes("masked_embedding.centroids.weight");
    let ordering = masked.bytes("masked_embedding.token_ordering");
    let file = file
        .tensor("masked_embd_centroids.weight", &[32, 20], DType::BF16, centroids)
        .tensor("masked_embd_ordering", &[640], DType::I32, ordering);
    open(file.finish().expect("a file"))
}

fn drafter(gguf: &Gguf, model: &Model) -> DraftSource {
    DraftSource::Drafter(block_on(Drafter::load(gguf, model)).expect("the drafter loads"))
}

/// Tokens a session generates after a prompt, and the acceptance counts.
fn written(
    session: &mut Session,
    prompt: &[u32],
    (count, sampling): (usize, DeviceSampling),
) -> (Vec<u32>, Option<DraftCounts>) {
    session.set_tokens(prompt).expect("the prompt fits");
    let next = |_| block_on(session.next(sampling)).expect("a token").expect("it fits");
    ((0..count).map(next).collect(), session.draft_counts())
}

/// Checks that drafts do not change the tokens.
fn check_same(
    model: &Model,
    draft: DraftOptions,
    prompt: &[u32],
    sampling: DeviceSampling,
) -> DraftCounts {
    let options =
        SessionOptions { context: Some(prompt.len() + TOKENS), ..SessionOptions::default() };
    let mut session = model.session(&options).expect("a session");
    let (alone, _) = written(&mut session, prompt, (TOKENS, sampling));
    let mut session = model.session(&options).expect("a session");
    session.draft(Some(draft)).expect("it fits");
    let (drafted, counts) = written(&mut session, prompt, (TOKENS, sampling));
    assert_eq!(drafted, alone, "{sampling:?} on {}", model.device().name());
    assert!(block_on(session.next(sampling)).expect("no failure").is_none(), "the context is full");
    counts.expect("something was drafted")
}

fn drawn(seed: u32) -> DeviceSampling {
    let draw = Draw { temperature: 0.4, top_p: 0.95, min_p: 0.0, top_k: 64.0 };
    DeviceSampling::Drawn { draw, seed }
}

/// A fixed number of drafts, so that rejected ones occur too.
fn fixed_length(source: DraftSource, most: usize) -> DraftOptions {
    DraftOptions { most, adapt: false, ..DraftOptions::new(source) }
}

#[test]
fn batch_invariant_passes_equal_single_token_passes() {
    let devices = devices();
    for device in &devices {
        for name in ["tiny-e2b-Q4_K_M", "tiny-moe-Q4_K_M"] {
            check_batch_invariant(name, device);
        }
    }
    few_lanes(&devices).iter().for_each(|device| check_batch_invariant("tiny-e2b-Q4_K_M", device));
}

/// The first GPU with few `busy_lanes`, so that small weights use the kernels of large ones.
fn few_lanes(devices: &[Device]) -> Option<Device> {
    let Some(Device::Gpu(gpu)) = devices.get(1) else { return None };
    Some(Device::Gpu(gpu.emulating(DeviceFacts {
        tuning: Tuning { busy_lanes: 64, ..Tuning::default() },
        ..gpu.facts().clone()
    })))
}

fn check_batch_invariant(name: &str, device: &Device) {
    let model = model(name, device);
    let ids = &Golden::of(name).ids("medium.ids")[..12];
    let mut session = model.session(&SessionOptions::default()).expect("a session");
    let mut one_by_one = Vec::new();
    for id in ids {
        session.extend(&[*id]).expect("it fits");
        one_by_one.extend(block_on(session.logits()).expect("logits"));
    }
    session.rewind(0);
    session.extend(ids).expect("they fit");
    let mut batched = Vec::new();
    block_on(session.logits_batch_invariant(&mut |rows| batched.extend_from_slice(rows)))
        .expect("logits");
    let bits = |logits: &[f32]| logits.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert!(bits(&batched) == bits(&one_by_one), "{name} on {}", device.name());
}

#[test]
fn drafts_equal_the_reference() {
    let golden = Golden::at("assistant/golden.safetensors");
    for device in devices() {
        let model = model(TARGET, &device);
        for (file, clustered) in [(plain_file(), false), (clustered_file(), true)] {
            for prompt in ["short", "medium"] {
                let mut session = model.session(&exact()).expect("a session");
                session.draft(Some(fixed_length(drafter(&file, &model), 4))).expect("it fits");
                session.extend(&golden.ids(&format!("{prompt}.ids"))).expect("they fit");
                let next = block_on(session.next(DeviceSampling::Greedy)).expect("a token");
                assert_eq!(next, Some(golden.ids(&format!("{prompt}.target_next"))[0]));
                let trace = block_on(session.trace_drafts(4)).expect("drafts").expect("a drafter");
                let place = format!("{prompt} on {}", device.name());
                let wanted = golden.ids(&format!("{prompt}.draft"));
                // The reference continued with cluster tokens: without clusters, steps are compared up to the first difference.
                let alike = trace.ids.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
                let alike = if clustered { 4 } else { (alike + 1).min(4) };
                assert!(!clustered || trace.ids == wanted, "{place}: {:?}", trace.ids);
                for step in 0..alike {
                    let full = golden.f32(&format!("{prompt}.step{step}.logits_full"));
                    let best =
                        (0..640).max_by(|a, b| full[*a].total_cmp(&full[*b])).expect("tokens");
                    assert!(clustered || trace.ids[step] as usize == best, "{place}: step {step}");
                }
                let compared =
                    |name: &str| (0..alike).any(|step| name.starts_with(&format!("step{step}.")));
                for tap in trace.taps.into_iter().filter(|tap| compared(&tap.name)) {
                    let name = tap.name.replace("logits", "logits_full");
                    let wanted = golden.f32(&format!("{prompt}.{name}"));
                    let pairs = tap.values.iter().zip(&wanted);
                    let error = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                    assert!(error < 1e-3, "{place}: {name} is off by {error}");
                    assert!(!clustered || !name.contains("logits"), "clusters have no full logits");
                }
            }
        }
    }
}

#[test]
fn a_drafter_does_not_change_the_output() {
    let prompt = Golden::of(TARGET).ids("medium.ids");
    for device in devices() {
        let model = model(TARGET, &device);
        for (file, sampling) in
            [(plain_file(), DeviceSampling::Greedy), (clustered_file(), drawn(7))]
        {
            let counts =
                check_same(&model, fixed_length(drafter(&file, &model), 3), &prompt, sampling);
            assert!(counts.drafted > 0, "{counts:?}");
        }
    }
}

#[test]
fn prompt_lookup_does_not_change_the_output() {
    for device in devices() {
        let mut accepted = 0;
        for name in ["micro-moe-Q8_0", "micro-dense-BF16"] {
            let model = model(name, &device);
            // These outputs repeat themselves.
            let prompt = Golden::of(name).ids("medium.ids");
            for sampling in [DeviceSampling::Greedy, drawn(3)] {
                accepted +=
                    check_same(&model, fixed_length(DraftSource::Text, 4), &prompt, sampling)
                        .accepted;
            }
        }
        assert!(accepted > 0, "no draft was accepted");
    }
}

#[test]
fn drafts_work_with_the_table_on_the_host() {
    for device in devices() {
        let model = model_with(TARGET, &device, TablePlace::Host);
        let prompt = Golden::of(TARGET).ids("short.ids");
        let source = drafter(&plain_file(), &model);
        check_same(&model, fixed_length(source, 3), &prompt, DeviceSampling::Greedy);
    }
}

/// Frequencies of the second token, which verifies a draft, over many seeds.
#[test]
fn sampled_tokens_follow_the_models_probabilities() {
    let model = model(TARGET, &Device::Cpu);
    let prompt = Golden::of(TARGET).ids("short.ids");
    let mut session = model.session(&SessionOptions::default()).expect("a session");
    session.draft(Some(fixed_length(drafter(&plain_file(), &model), 1))).expect("it fits");
    let draw = Draw { temperature: 2.0, top_p: 1.0, min_p: 0.0, top_k: 8.0 };
    let first = {
        session.set_tokens(&prompt).expect("it fits");
        block_on(session.next(DeviceSampling::Greedy)).expect("a token").expect("room")
    };
    let extended = [&prompt[..], &[first]].concat();
    session.set_tokens(&extended).expect("it fits");
    let logits = block_on(session.logits()).expect("logits");
    let mut best: Vec<(f32, u32)> = logits.iter().copied().zip(0..).collect();
    best.sort_by(|a, b| b.0.total_cmp(&a.0));
    let weights: Vec<f64> =
        best[..8].iter().map(|(x, _)| (f64::from(x - best[0].0) / 2.0).exp()).collect();
    let sum: f64 = weights.iter().sum();
    const DRAWS: u32 = 600;
    let mut shares = [0.0; 8];
    for seed in 0..DRAWS {
        session.set_tokens(&extended).expect("it fits");
        let token = block_on(session.next(DeviceSampling::Drawn { draw, seed })).expect("a token");
        let place = best[..8].iter().position(|(_, id)| Some(*id) == token).expect("of the best");
        shares[place] += 1.0 / f64::from(DRAWS);
    }
    for (share, weight) in shares.iter().zip(&weights) {
        // Four standard deviations of a frequency in 600 samples are at most 0.082.
        assert!((share - weight / sum).abs() < 0.082, "{shares:?} and not {weights:?} / {sum}");
    }
}

#[test]
fn a_drafter_of_another_model_is_refused() {
    let model = model("tiny-e2b-Q4_K_M", &Device::Cpu);
    let error =
        block_on(Drafter::load(&plain_file(), &model)).expect_err("another model's drafter");
    let text = error.to_string();
    assert!(text.contains("hidden size is 64") && text.contains("256"), "{text}");
    let no_drafter = open(golden("gguf/micro-dense-BF16.gguf"));
    let error = block_on(Drafter::load(&no_drafter, &model)).expect_err("not a drafter");
    assert!(error.to_string().contains("not a drafter"), "{error}");
}
