//! `rullama bench --train`: speed and memory of training on this machine.

use std::time::Instant;

use anyhow::Result;
use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_runtime::{Model, model::CacheType};
use rullama_train::{AdapterOptions, Example, Settings, Shape, Trainer, defaults, fresh};
use serde_json::json;

use crate::{
    load::{DeviceArgs, Loader},
    locate::Stores,
    output::{bytes, print, print_json},
};

/// Options of the benchmark.
pub(crate) struct TrainBench<'a> {
    pub(crate) model: &'a str,
    /// Tokens per sequence.
    pub(crate) tokens: usize,
    /// Sequences per step.
    pub(crate) batch: usize,
    pub(crate) rank: usize,
    pub(crate) memory: u64,
    pub(crate) repetitions: usize,
    /// Whether to profile the kernels of a step.
    pub(crate) profile: bool,
    pub(crate) json: bool,
}

/// Trains LoRA pairs on all projections of all layers with arbitrary tokens, all of which are targets.
pub(crate) fn bench(stores: &Stores, test: &TrainBench<'_>, device: &DeviceArgs) -> Result<()> {
    let loader = Loader::new(stores.find(test.model)?, device, Some(1), CacheType::F16);
    let (model, _) = loader.load()?;
    let adapter = fresh(
        &model,
        &AdapterOptions {
            rank: test.rank,
            alpha: defaults::alpha(test.rank),
            targets: projections(&model),
            seed: 0,
        },
    )?;
    let vocabulary = model.config().vocabulary as u64;
    let ids = (0..test.tokens as u64).map(|i| ((i * 7919 + 13) % vocabulary) as u32).collect();
    let example = Example::after_prompt(ids, 1);
    let shape = Shape { tokens: test.tokens, targets: example.targets() };
    let settings =
        Settings { memory: Some(test.memory), micro_batch: test.batch, ..Settings::default() };
    let start = Instant::now();
    let mut trainer = block_on(Trainer::new(&model, &adapter, shape, settings))?;
    let prepared = start.elapsed().as_secs_f64();
    let step = |trainer: &mut Trainer| -> Result<f64> {
        let loss = block_on(trainer.gradients_of(&vec![&example; test.batch], 0))?;
        trainer.update(1e-4)?;
        Ok(loss)
    };
    step(&mut trainer)?;
    let mut times = Vec::new();
    let mut loss = 0.0;
    for _ in 0..test.repetitions.max(1) {
        let start = Instant::now();
        loss = step(&mut trainer)?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let (median, need) = (times[times.len() / 2], trainer.need());
    let peak = match model.device() {
        Device::Cpu => 0,
        Device::Gpu(gpu) => gpu.allocated().peak,
    };
    let tokens = test.tokens * test.batch;
    let speed = tokens as f64 / median;
    if test.json {
        return print_json(&json!({
            "adapter": model.device().name(),
            "tokens": test.tokens, "batch": test.batch, "micro_batch": need.micro_batch, "rank": test.rank, "parameters": trainer.parameters(),
            "seconds": times, "tokens_per_second": speed, "loss": loss,
            "prepare_seconds": prepared,
            "gpu_bytes": peak, "model_bytes": need.model,
            "adapter_bytes": need.adapter, "work_bytes": need.work,
            "layers_computed_twice": need.recomputed,
        }));
    }
    if test.profile
        && let Some([sequence, update]) = block_on(trainer.profile())?
    {
        print(&format!("one pass\n{sequence}\none update\n{update}\n"))?;
    }
    print(&format!(
        "{}: {speed:.0} trained tokens/s ({:.0} ms per step of {} tokens), at most {} on the GPU ({} model, {} adapter, {} activations; {} sequences in a pass, {} of {} layers recomputed), ready after {prepared:.1} s\n",
        model.device().name(),
        median * 1e3,
        tokens,
        bytes(peak),
        bytes(need.model),
        bytes(need.adapter),
        bytes(need.work),
        need.micro_batch,
        need.recomputed,
        model.config().layers.len(),
    ))
}

/// Names of all trainable weights in layers, without layer numbers.
fn projections(model: &Model) -> Vec<String> {
    let all = rullama_models::decoder::trainable(model.config(), model.catalog());
    let kinds = all.iter().filter_map(|name| Some(name.strip_prefix("blk.")?.split_once('.')?.1));
    let mut kinds: Vec<String> = kinds.map(str::to_owned).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
