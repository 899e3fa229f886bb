//! Denoising steps and whole texts against the reference.

use std::{ops::ControlFlow, rc::Rc};

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_runtime::{
    Denoiser,
    denoise::{Block, DenoiseOptions, Denoised, StepInputs, WriteOptions, Writing, Written},
    generate::{Event, Finish, Prompt},
    model::CacheType,
};
use rullama_source::MemorySource;
use rullama_testkit::golden;

use crate::golden::{Golden, devices};

fn file() -> Gguf {
    let bytes = golden("diffusion/micro-diffusion-BF16.gguf");
    block_on(Gguf::open(Rc::new(MemorySource::new("diffusion.gguf", bytes)))).expect("it opens")
}

fn model(device: &Device) -> Denoiser {
    let mut go_on = |_| ControlFlow::Continue(());
    block_on(Denoiser::load(file(), device.clone(), &mut go_on)).expect("the model loads")
}

#[test]
fn scales_that_kernels_ignore_are_refused() {
    let mut bytes = golden("diffusion/micro-diffusion-BF16.gguf");
    let name = b"blk.0.ffn_down_exps.scale";
    let at = bytes.windows(name.len()).position(|w| w == name).expect("the tensor is there");
    bytes[at..at + name.len()].copy_from_slice(b"blk.0.ffn_gate_exps.scale");
    let source = Rc::new(MemorySource::new("changed.gguf", bytes));
    let gguf = block_on(Gguf::open(source)).expect("it opens");
    let estimate = Denoiser::memory_of_file(&gguf, None, CacheType::F32);
    assert!(estimate.is_err(), "the memory of a model that will be refused is estimated");
    let mut go_on = |_| ControlFlow::Continue(());
    let refused = block_on(Denoiser::load(gguf, Device::Cpu, &mut go_on)).expect_err("refused");
    assert!(refused.to_string().contains("blk.0.ffn_gate_exps.scale"), "{refused}");
}

fn error(actual: &[f32], wanted: &[f32]) -> f32 {
    assert_eq!(actual.len(), wanted.len());
    actual.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn steps_equal_the_reference() {
    let golden = Golden::at("diffusion/golden.safetensors");
    for device in devices() {
        let model = model(&device);
        let mut session = model.session(Some(128), CacheType::F32).expect("a session");
        block_on(session.read(&golden.ids("prompt"))).expect("the prompt is read");
        for step in 0..3 {
            let inputs = StepInputs {
                temperature: 1.0,
                bound: 0.5,
                uniform: vec![0.5; 24],
                noise: (0..24).map(|i| 600 + i).collect(),
            };
            let canvas = golden.ids(&format!("canvas{step}"));
            let trace = block_on(session.trace(&canvas, step > 0, &inputs)).expect("a step");
            let name = |what: &str| format!("step{step}.{what}");
            let place = format!("step {step} on {}", device.name());
            let off = error(&trace.logits, &golden.f32(&name("logits")));
            assert!(off < 1e-3, "{place}: logits are off by {off}");
            let off = error(&trace.entropy, &golden.f32(&name("entropy")));
            assert!(off < 1e-3, "{place}: entropies are off by {off}");
            assert_eq!(trace.best, golden.ids(&name("argmax")), "{place}");
            // Positions that are not accepted hold noise.
            let noise = |(place, id): (usize, &u32)| u32::from(*id != 600 + place as u32);
            let accepted: Vec<u32> = trace.canvas.iter().enumerate().map(noise).collect();
            let wanted = golden.ids(&name("accepted"));
            assert_eq!(accepted, wanted, "{place}");
            assert_eq!(trace.stats[2] as u32, wanted.iter().sum::<u32>(), "{place}");
        }
    }
}

fn written(
    model: &Denoiser,
    options: &DenoiseOptions,
    blocks: usize,
) -> (Vec<Block>, Vec<Denoised>) {
    let mut session = model.session(Some(160), CacheType::F16).expect("a session");
    let prompt = Golden::at("diffusion/golden.safetensors").ids("prompt");
    block_on(session.read(&prompt)).expect("the prompt is read");
    let mut steps = Vec::new();
    let mut written = Vec::new();
    for _ in 0..blocks {
        let mut each = |step: &Denoised| {
            steps.push(step.clone());
            ControlFlow::Continue(())
        };
        let block = block_on(session.denoise(options, &mut each)).expect("no failure");
        let block = block.expect("it was not cancelled");
        block_on(session.read(&block.tokens)).expect("it fits");
        written.push(block);
    }
    (written, steps)
}

#[test]
fn a_seed_reproduces_a_text() {
    let model = model(&Device::Cpu);
    let options = |seed| {
        let mut options = model.options(seed);
        options.schedule.steps = 4;
        DenoiseOptions { watch: true, ..options }
    };
    let (one, steps) = written(&model, &options(1), 2);
    assert_eq!(one, written(&model, &options(1), 2).0);
    assert_ne!(one, written(&model, &options(2), 2).0);
    assert!(one.iter().all(|block| block.tokens.len() == 24 && block.steps == 4), "{one:?}");
    assert_ne!(one[0], one[1], "blocks use different random numbers");
    assert_eq!(
        steps[3].tokens, one[0].tokens,
        "a block holds the most likely tokens of its last step"
    );
    assert!(steps.iter().all(|step| step.accepted > 0 && step.entropy > 0.0), "{steps:?}");
}

#[test]
fn kept_positions_are_reported() {
    let model = model(&Device::Cpu);
    let mut options = DenoiseOptions { watch: true, ..model.options(1) };
    options.schedule.steps = 3;
    // The entropy bound is so large that every position keeps its sampled token.
    options.schedule.entropy_bound = 1e6;
    for step in written(&model, &options, 1).1 {
        assert_eq!((step.accepted, step.kept.len()), (24, 24));
        assert!(
            step.kept.contains(&true),
            "some sampled tokens are the most likely ones: {step:?}"
        );
    }
    options.watch = false;
    let unwatched = written(&model, &options, 1).1;
    assert!(unwatched.iter().all(|step| step.kept.is_empty() && step.tokens.is_empty()));
}

/// A reply to the golden prompt: text, finish reason, counts.
fn answer(model: &Denoiser, limits: WriteOptions) -> (String, Finish, Written) {
    let mut session = model.session(Some(160), CacheType::F16).expect("a session");
    let prompt = Prompt::tokens(Golden::at("diffusion/golden.safetensors").ids("prompt"));
    let writing = Writing::begin(&mut session, model, &prompt, limits);
    let mut writing = block_on(writing).expect("the prompt is read");
    let mut text = String::new();
    loop {
        let more = block_on(writing.block(&mut |_| ControlFlow::Continue(()))).expect("a block");
        while let Some(event) = writing.ready() {
            match event {
                Event::Text(said) => text.push_str(&said),
                Event::Done(done) => {
                    assert!(!more, "no event follows the end");
                    assert_eq!(done.answer_tokens, writing.written().tokens);
                    return (text, done.finish, writing.written());
                }
                other => panic!("plain text has no {other:?}"),
            }
        }
    }
}

#[test]
fn replies_end_at_their_limits() {
    let model = model(&Device::Cpu);
    let mut denoise = model.options(1);
    denoise.schedule.steps = 2;
    let limits = WriteOptions { denoise, blocks: 2, tokens: None, stops: Vec::new() };
    let (whole, finish, took) = answer(&model, limits.clone());
    assert_eq!((finish, took), (Finish::Length, Written { blocks: 2, steps: 4, tokens: 48 }));
    let (short, finish, took) = answer(&model, WriteOptions { tokens: Some(30), ..limits.clone() });
    assert_eq!((finish, took.tokens, took.blocks), (Finish::Length, 30, 2));
    assert!(whole.starts_with(&short) && short.len() < whole.len(), "{short}");
    let many = WriteOptions { blocks: 99, ..limits.clone() };
    assert_eq!(answer(&model, many).1, Finish::Context, "the context is full first");
    let middle: String = whole.chars().skip(9).take(4).collect();
    let (stopped, finish, _) = answer(&model, WriteOptions { stops: vec![middle], ..limits });
    assert_eq!((finish, stopped.chars().count()), (Finish::Stop, 9), "{stopped}");
}

#[test]
fn a_confident_and_stable_canvas_ends() {
    let model = model(&Device::Cpu);
    let mut options = model.options(1);
    // The confidence threshold is so high that stability alone decides.
    (options.schedule.confidence, options.schedule.stability) = (f32::MAX, 0);
    assert_eq!(written(&model, &options, 1).0[0].steps, 1);
    options.schedule.stability = 1;
    assert!(written(&model, &options, 1).0[0].steps > 1);
}

#[test]
fn impossible_contexts_are_refused() {
    let model = model(&Device::Cpu);
    assert!(model.session(Some(24), CacheType::F16).is_err(), "no space for a prompt");
    let mut session = model.session(Some(64), CacheType::F16).expect("a session");
    let error = block_on(session.read(&[5; 50])).expect_err("no space for a canvas");
    assert!(error.to_string().contains("64"), "{error}");
    assert!(block_on(session.read(&[9999])).is_err());
}
