//! Whether fast ways of computing choose the same tokens: the demo model is forced through a text of its own, and its most likely
//! tokens are compared with those of the CPU, which computes the same graph as it is written, in f32 but for the caches, which are
//! rounded to halves there too, as the default is.

use std::ops::ControlFlow;

use anyhow::Result;
use pollster::block_on;
use rullama_engine::{
    executor::Device,
    gpu::{DeviceFacts, Gpu},
};
use rullama_runtime::{
    Model,
    model::{CacheType, LoadOptions},
    session::{DeviceSampling, SessionOptions},
};
use rullama_tokenizer::Special;

use crate::locate::{DEMO_NAME, Stores};

/// What the text is made of: the model continues each as the CPU would.
const QUESTIONS: [&str; 6] = [
    "What is 23 + 45?",
    "What is the capital of France?",
    "Who are you?",
    "Spell the word garden.",
    "Tell me a story about a fox and a lamp.",
    "What is 81 - 27?",
];
/// Tokens of a question and what the model says to it, at most.
const LENGTH: usize = 64;

/// Of how many tokens, so many are the same.
pub(super) struct Agreement {
    pub(super) way: &'static str,
    pub(super) same: usize,
    pub(super) of: usize,
}

/// How the tokens of a text are computed.
struct Way {
    name: &'static str,
    cache: CacheType,
    /// With products of packed bytes, where the GPU has them.
    packed: bool,
    /// One at a time, as when an answer is written.
    apart: bool,
}

/// Every way on a GPU; nothing where there is none, or only a software one, which takes minutes.
pub(super) fn agreement(stores: &Stores, device: &Device) -> Result<Vec<Agreement>> {
    let Device::Gpu(gpu) = device else { return Ok(Vec::new()) };
    if gpu.is_software() {
        return Ok(Vec::new());
    }
    let cpu = demo(stores, Device::Cpu)?;
    let texts = texts(&cpu)?;
    let by_cpu = |cache| -> Result<Vec<Vec<u32>>> {
        texts.iter().map(|text| likeliest(&cpu, text, cache, false)).collect()
    };
    let (wanted, finer) = (by_cpu(CacheType::F16)?, by_cpu(CacheType::F32)?);
    let way = |name, cache, packed, apart| Way { name, cache, packed, apart };
    let ways = [
        way("decode, f16 caches (default)", CacheType::F16, true, true),
        way("decode, f32 caches", CacheType::F32, true, true),
        way("decode, q8 caches", CacheType::Q8, true, true),
        way("decode, no packed dot products", CacheType::F16, false, true),
        way("prefill, f16 caches (default)", CacheType::F16, true, false),
        way("prefill, q8 caches", CacheType::Q8, true, false),
    ];
    // How much the rounding of the caches changes by itself.
    let mut found = vec![compared("the CPU, f32 caches", &finer, &wanted)];
    for Way { name, cache, packed, apart } in ways {
        let model = demo(stores, Device::Gpu(playing(gpu, packed)))?;
        let chosen = texts.iter().map(|text| likeliest(&model, text, cache, apart));
        found.push(compared(name, &chosen.collect::<Result<Vec<_>>>()?, &wanted));
    }
    Ok(found)
}

fn compared(way: &'static str, chosen: &[Vec<u32>], wanted: &[Vec<u32>]) -> Agreement {
    let pairs = || chosen.iter().flatten().zip(wanted.iter().flatten());
    let same = pairs().filter(|(chosen, wanted)| chosen == wanted).count();
    Agreement { way, same, of: pairs().count() }
}

fn playing(gpu: &Gpu, packed: bool) -> Gpu {
    let facts = gpu.facts();
    gpu.playing(DeviceFacts { packed_dot: facts.packed_dot && packed, ..facts.clone() })
}

fn demo(stores: &Stores, device: Device) -> Result<Model> {
    let (_, gguf) = stores.open(DEMO_NAME)?;
    let options = LoadOptions { context: Some(LENGTH), ..LoadOptions::default() };
    Ok(block_on(Model::load(gguf, device, &options, &mut |_| ControlFlow::Continue(())))?)
}

/// Questions with the answers that the model gives on the CPU.
fn texts(model: &Model) -> Result<Vec<Vec<u32>>> {
    let mut texts = Vec::new();
    for question in QUESTIONS {
        let tokenizer = model.tokenizer()?;
        let text = format!("<|turn>user\n{question}<turn|>\n<|turn>model\n");
        let mut ids: Vec<u32> = tokenizer.bos().into_iter().collect();
        ids.extend(tokenizer.encode(&text, Special::Parse));
        let mut session = model.session(&options(CacheType::F32))?;
        session.extend(&ids)?;
        while session.tokens().len() < LENGTH {
            let Some(next) = block_on(session.next(DeviceSampling::Greedy))? else { break };
            ids.push(next);
            if tokenizer.is_end(next) {
                break;
            }
        }
        texts.push(ids);
    }
    Ok(texts)
}

/// The most likely token after each of a text.
fn likeliest(model: &Model, text: &[u32], cache: CacheType, apart: bool) -> Result<Vec<u32>> {
    let mut session = model.session(&options(cache))?;
    session.extend(text)?;
    let vocabulary = model.config().vocabulary;
    let mut chosen = Vec::new();
    let mut rows = |rows: &[f32]| {
        chosen.extend(rows.chunks_exact(vocabulary).map(|row| {
            let best = (0u32..).zip(row).max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
            best.map_or(0, |(id, _)| id)
        }));
    };
    if apart {
        block_on(session.logits_batch_invariant(&mut rows))?;
    } else {
        block_on(session.all_logits(&mut rows))?;
    }
    Ok(chosen)
}

fn options(cache: CacheType) -> SessionOptions {
    SessionOptions { context: Some(LENGTH), cache, ..SessionOptions::default() }
}
