//! Measurements of embedding and diffusion models.

use std::{ops::ControlFlow, time::Instant};

use anyhow::Result;
use pollster::block_on;
use rullama_gguf::Gguf;
use rullama_runtime::{Denoiser, Embedder, model::CacheType};
use serde_json::json;

use super::BenchArgs;
use crate::{
    load::showing,
    output::{bytes, print, print_json, table},
};

/// Texts per batch.
const TEXTS: usize = 32;
/// Denoising steps measured.
const STEPS: usize = 8;

/// One line: name and rate.
type Line = (String, f64);

/// Embeds texts of `-p` tokens, 32 at a time.
pub(super) fn embeddings(gguf: &Gguf, args: &BenchArgs) -> Result<()> {
    let device = args.device.open()?;
    let embedder = showing(|each| block_on(Embedder::load(gguf, device, each)))?;
    let (context, vocabulary) = (embedder.config().context, embedder.config().vocabulary);
    let mut lines: Vec<Line> = Vec::new();
    for tokens in args.prompt.iter().map(|tokens| (*tokens).clamp(1, context)) {
        let text =
            |text: usize| (0..tokens).map(move |i| ((text * 7919 + i * 31) % vocabulary) as u32);
        let texts: Vec<Vec<u32>> = (0..TEXTS).map(|number| text(number).collect()).collect();
        let mut best = 0.0_f64;
        // The first one is the warm-up: graphs and kernels are compiled.
        for repetition in 0..=args.repetitions {
            let start = Instant::now();
            block_on(embedder.embed_tokens(&texts, None))?;
            let rate = (TEXTS * tokens) as f64 / start.elapsed().as_secs_f64();
            best = if repetition == 0 { 0.0 } else { best.max(rate) };
        }
        lines.push((format!("{TEXTS} texts of {tokens} tokens"), best));
    }
    report(args, embedder.device().name(), embedder.gpu_bytes(), &lines)
}

/// Denoises a block in eight steps after a prompt of `-p` tokens.
pub(super) fn diffusion(gguf: Gguf, args: &BenchArgs) -> Result<()> {
    let device = args.device.open()?;
    let model = showing(|each| block_on(Denoiser::load(gguf, device, each)))?;
    let (canvas, vocabulary) = (model.config().canvas, model.config().decoder.vocabulary);
    let mut options = model.options(1);
    // With random weights no block becomes confident enough to stop early.
    (options.schedule.steps, options.schedule.confidence) = (STEPS, 0.0);
    let mut lines: Vec<Line> = Vec::new();
    for tokens in args.prompt.iter().map(|tokens| (*tokens).max(1)) {
        let context = (tokens + 2 * canvas).min(model.config().decoder.context);
        let ids: Vec<u32> = (0..tokens).map(|i| ((i * 7919) % vocabulary) as u32).collect();
        let (mut read, mut best) = (0.0_f64, 0.0_f64);
        let mut kernels = None;
        for repetition in 0..=args.repetitions {
            let mut session = model.session(Some(context), CacheType::F16)?;
            if repetition == 0 {
                // Warm-up: kernels are compiled.
                block_on(session.read(&ids))?;
                block_on(session.denoise(&options, &mut |_| ControlFlow::Continue(())))?;
                continue;
            }
            let start = Instant::now();
            block_on(session.read(&ids))?;
            let mut reading = None;
            let mut each = |_: &_| {
                reading.get_or_insert_with(|| start.elapsed());
                ControlFlow::Continue(())
            };
            block_on(session.denoise(&options, &mut each))?;
            let first = reading.unwrap_or_else(|| start.elapsed());
            let steps = (start.elapsed() - first).as_secs_f64() / (STEPS - 1) as f64;
            read = read.max(tokens as f64 / first.as_secs_f64());
            best = best.max(1.0 / steps);
            if args.profile && repetition == args.repetitions {
                kernels = block_on(session.profile())?;
            }
        }
        if let Some(kernels) = kernels {
            print(&format!("one step after {tokens} tokens\n{kernels}\n"))?;
        }
        lines.push((format!("prompt of {tokens} and first step, tokens/s"), read));
        lines.push((format!("steps/s, canvas of {canvas} after {tokens} tokens"), best));
        let rate = best * canvas as f64 / 12.0;
        lines.push((format!("tokens/s at 12 steps per block, after {tokens} tokens"), rate));
    }
    report(args, model.device().name(), model.gpu_bytes(), &lines)
}

fn report(args: &BenchArgs, adapter: &str, gpu_bytes: u64, lines: &[Line]) -> Result<()> {
    if args.json {
        let tests = lines.iter().map(|(name, rate)| json!({ "test": name, "rate": rate }));
        return print_json(&json!({
            "model": args.model, "adapter": adapter, "gpu_bytes": gpu_bytes, "tests": tests.collect::<Vec<_>>(),
        }));
    }
    let mut rows = vec![
        vec!["model".into(), args.model.clone()],
        vec!["adapter".into(), adapter.into()],
        vec!["GPU memory".into(), bytes(gpu_bytes)],
    ];
    rows.extend(lines.iter().map(|(name, rate)| vec![name.clone(), format!("{rate:.1}")]));
    print(&table(&rows))
}
