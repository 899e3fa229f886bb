//! Whether faster configurations choose the same tokens: the demo model processes texts it generated on the CPU, and its
//! most likely next tokens are compared with those of the CPU reference, which computes in f32 with f16 caches (the default).

use std::ops::ControlFlow;

use anyhow::Result;
use pollster::block_on;
use rullama_chat::{Conversation, Message};
use rullama_engine::{
    executor::Device,
    gpu::{DeviceFacts, Gpu},
};
use rullama_runtime::{
    Model,
    generate::{ChatOptions, prompt_of},
    model::{CacheType, LoadOptions},
    session::{DeviceSampling, SessionOptions},
};

use crate::locate::{DEMO_NAME, Stores};

/// Questions of the texts; the model answers them on the CPU.
const QUESTIONS: [&str; 6] = [
    "What is 23 + 45?",
    "What is the capital of France?",
    "Who are you?",
    "Spell the word garden.",
    "Tell me a story about a fox and a lamp.",
    "What is 81 - 27?",
];
/// Maximum tokens of a question and its answer.
const LENGTH: usize = 64;

/// Number of tokens (`same` of `of`) that a configuration and the CPU agree on.
pub(super) struct Agreement {
    pub(super) way: &'static str,
    pub(super) same: usize,
    pub(super) of: usize,
}

/// How the logits of a text are computed.
struct Configuration {
    name: &'static str,
    cache: CacheType,
    /// With packed int8 dot products, if the GPU has them.
    packed: bool,
    /// One token at a time, as in decode.
    single: bool,
}

/// Every configuration on a GPU; empty on the CPU and on software GPUs, which would take minutes.
pub(super) fn agreement(stores: &Stores, device: &Device) -> Result<Vec<Agreement>> {
    let Device::Gpu(gpu) = device else { return Ok(Vec::new()) };
    if gpu.is_software() {
        return Ok(Vec::new());
    }
    let cpu = demo(stores, Device::Cpu)?;
    let texts = texts(&cpu)?;
    let by_cpu = |cache| -> Result<Vec<Vec<u32>>> {
        texts.iter().map(|text| best_tokens(&cpu, text, cache, false)).collect()
    };
    let (wanted, finer) = (by_cpu(CacheType::F16)?, by_cpu(CacheType::F32)?);
    let way = |name, cache, packed, single| Configuration { name, cache, packed, single };
    let ways = [
        way("decode, f16 caches (default)", CacheType::F16, true, true),
        way("decode, f32 caches", CacheType::F32, true, true),
        way("decode, q8 caches", CacheType::Q8, true, true),
        way("decode, no packed dot products", CacheType::F16, false, true),
        way("prefill, f16 caches (default)", CacheType::F16, true, false),
        way("prefill, q8 caches", CacheType::Q8, true, false),
    ];
    // The effect of rounding the caches alone.
    let mut found = vec![compared("the CPU, f32 caches", &finer, &wanted)];
    for Configuration { name, cache, packed, single } in ways {
        let model = demo(stores, Device::Gpu(emulating(gpu, packed)))?;
        let chosen = texts.iter().map(|text| best_tokens(&model, text, cache, single));
        found.push(compared(name, &chosen.collect::<Result<Vec<_>>>()?, &wanted));
    }
    Ok(found)
}

fn compared(way: &'static str, chosen: &[Vec<u32>], wanted: &[Vec<u32>]) -> Agreement {
    let pairs = || chosen.iter().flatten().zip(wanted.iter().flatten());
    let same = pairs().filter(|(chosen, wanted)| chosen == wanted).count();
    Agreement { way, same, of: pairs().count() }
}

fn emulating(gpu: &Gpu, packed: bool) -> Gpu {
    let facts = gpu.facts();
    gpu.emulating(DeviceFacts { packed_dot: facts.packed_dot && packed, ..facts.clone() })
}

fn demo(stores: &Stores, device: Device) -> Result<Model> {
    let (_, gguf) = stores.open(DEMO_NAME)?;
    let options = LoadOptions { context: Some(LENGTH), ..LoadOptions::default() };
    Ok(block_on(Model::load(gguf, device, &options, &mut |_| ControlFlow::Continue(())))?)
}

/// Questions with the model's answers on the CPU.
fn texts(model: &Model) -> Result<Vec<Vec<u32>>> {
    let mut texts = Vec::new();
    for question in QUESTIONS {
        let tokenizer = model.tokenizer()?;
        let messages = vec![Message::new("user", question)];
        let conversation = Conversation { messages, ..Conversation::default() };
        let mut ids = prompt_of(model, &conversation, ChatOptions::default())?.tokens;
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

/// The most likely next token at each position of a text.
fn best_tokens(model: &Model, text: &[u32], cache: CacheType, single: bool) -> Result<Vec<u32>> {
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
    if single {
        block_on(session.logits_batch_invariant(&mut rows))?;
    } else {
        block_on(session.all_logits(&mut rows))?;
    }
    Ok(chosen)
}

fn options(cache: CacheType) -> SessionOptions {
    SessionOptions { context: Some(LENGTH), cache, ..SessionOptions::default() }
}
