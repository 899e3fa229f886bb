//! `rullama bench`: the speed of prefill and decode on this machine.

mod agreement;
mod growth;
mod http;
mod measure;
mod parallel;
mod profile;
mod random;
mod related;
mod report;

use std::{collections::BTreeMap, num::NonZeroUsize, path::PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args as Group;
use rullama::{Location, changed_constants};
use rullama_engine::executor::Device;
use rullama_models::{embedding::EmbeddingConfig, gemma4::diffusion::DiffusionConfig};
use rullama_runtime::{
    model::{CacheType, Summary},
    scheduler::SchedulerOptions,
    session::{DraftOptions, SessionOptions},
};
use rullama_train::defaults;

use crate::{
    adapters::{self, AdapterArgs},
    draft::DraftArgs,
    load::{DeviceArgs, Loader, size},
    locate::Stores,
    output::{print, print_json},
    output_file,
    train::{self, bench::TrainBench},
};
use measure::{Bench, Test};

#[derive(Debug, Group)]
pub(crate) struct BenchArgs {
    /// Name, path or URL
    pub(crate) model: String,
    /// Prompt lengths for prefill; 0 skips prefill
    #[arg(short = 'p', long, value_name = "TOKENS", default_value = "512", value_delimiter = ',')]
    prompt: Vec<usize>,
    /// Tokens to generate; 0 skips decode
    #[arg(short = 'n', long, value_name = "TOKENS", default_value = "128", value_delimiter = ',')]
    generate: Vec<usize>,
    /// Tokens already in the context
    #[arg(short = 'd', long, value_name = "TOKENS", default_value = "0", value_delimiter = ',')]
    depth: Vec<usize>,
    /// Measured repetitions of each test, after one warm-up run
    #[arg(short = 'r', long, value_name = "N", default_value_t = 5)]
    repetitions: usize,
    /// Benchmark LoRA training instead: all projections, sequences of -p tokens
    #[arg(long)]
    train: bool,
    /// LoRA rank for --train
    #[arg(long, default_value_t = defaults::RANK, requires = "train")]
    rank: usize,
    /// Sequences per step for --train
    #[arg(long, value_name = "SEQUENCES", default_value = "1", requires = "train")]
    batch: NonZeroUsize,
    /// GPU memory for --train, 8 GB if not given; layers that do not fit are recomputed in the backward pass
    #[arg(long, value_name = "BYTES", value_parser = size, requires = "train")]
    memory: Option<u64>,
    /// Accept this share of drafted tokens regardless of the model, for random weights. Needs --draft
    #[arg(long, value_name = "SHARE", value_parser = share)]
    accept: Option<f32>,
    #[command(flatten)]
    draft: DraftArgs,
    /// Also print the time of each kernel, if the GPU has timestamps
    #[arg(long)]
    profile: bool,
    /// Also measure scaling, each with the model it should follow: decode by depth (to 131072 tokens), adapters (to 8) and streams (to 32),
    /// prefill by length (32 to 32768), images by size and memory by context; prints tables and writes plots to this file
    #[arg(long, value_name = "FILE.html")]
    growth: Option<PathBuf>,
    /// With --growth: the projector file, to measure images
    #[arg(long, value_name = "FILE", requires = "growth")]
    mmproj: Option<PathBuf>,
    /// Instead measure so many requests at once, each with a prompt of -p and a completion of -n tokens
    #[arg(long, value_name = "STREAMS", value_delimiter = ',')]
    parallel: Vec<NonZeroUsize>,
    /// With --parallel: also submit a prompt of this many tokens when all requests generate, and report the gaps between tokens until it is prefilled
    #[arg(long, value_name = "TOKENS", requires = "parallel")]
    long_prompt: Option<usize>,
    /// With --parallel: also give more than 8 requests the tokens that each gets alone. Otherwise GPUs with matrix units multiply them by GEMM
    /// tiles, which are faster and round differently
    #[arg(long, requires = "parallel")]
    batch_invariant: bool,
    /// With --parallel and --lora-rank: give the requests so many random adapters in turn, one each
    #[arg(
        long,
        value_name = "N",
        requires = "parallel",
        requires = "lora_rank",
        conflicts_with = "http"
    )]
    adapter_count: Option<NonZeroUsize>,
    /// With --parallel: send the same requests to the scheduler and over HTTP to a server in this process, and report what HTTP costs. Each stream sends
    /// -r requests, one after another
    #[arg(long, requires = "parallel", conflicts_with_all = ["long_prompt", "batch_invariant", "profile"])]
    http: bool,
    /// Without matrix units, as in browsers
    #[arg(long, conflicts_with_all = ["train", "parallel"])]
    no_matrix_units: bool,
    /// Skip the check that GPU and CPU choose the same tokens with the demo model; software GPUs are never checked
    #[arg(long)]
    no_agreement: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    adapters: AdapterArgs,
    /// Use a random LoRA adapter of this rank on all projections of all layers
    #[arg(long, value_name = "RANK")]
    lora_rank: Option<usize>,
    #[command(flatten)]
    device: DeviceArgs,
}

pub(crate) fn bench(stores: &Stores, args: &BenchArgs) -> Result<()> {
    if args.train {
        let test = TrainBench {
            model: &args.model,
            tokens: args.prompt.first().copied().unwrap_or(0).max(2),
            batch: args.batch.get(),
            rank: args.rank,
            memory: args.memory.unwrap_or(defaults::MEMORY),
            repetitions: args.repetitions,
            profile: args.profile,
            json: args.json,
        };
        return train::bench::bench(stores, &test, &args.device);
    }
    let (place, gguf) = stores.open(&args.model)?;
    if EmbeddingConfig::is_embedding(&gguf) {
        return related::embeddings(&gguf, args);
    }
    if DiffusionConfig::is_diffusion(&gguf) {
        return related::diffusion(gguf, args);
    }
    if !args.parallel.is_empty() {
        return bench_parallel(place, args);
    }
    let tests = tests(args);
    if (tests.is_empty() && args.growth.is_none()) || args.repetitions == 0 {
        bail!("nothing to measure: -r, and -p or -n, must be greater than 0");
    }
    if let Some(path) = &args.growth {
        output_file::check(path).with_context(|| path.display().to_string())?;
    }
    let grown = match args.growth {
        Some(_) => growth::context(Summary::of(&gguf)?.trained_context),
        None => 1,
    };
    let context = tests.iter().map(Test::context).max().unwrap_or(1).max(grown);
    let mut adapters = args.adapters.read(&place)?;
    let mut loader = Loader::new(place, &args.device, Some(context), CacheType::F16);
    loader.options.exact = args.no_matrix_units;
    let (model, load) = loader.load()?;
    adapters.0.extend(args.lora_rank.map(|rank| (random::adapter(&model, rank, 0), 1.0)));
    let options = SessionOptions {
        context: Some(context),
        cache: loader.options.cache,
        ..SessionOptions::default()
    };
    if args.accept.is_some() && !args.draft.wanted() {
        bail!("--accept needs --draft FILE or --draft ngram");
    }
    let draft = match args.draft.wanted() {
        true => args.draft.options(stores, &loader.location, &model)?,
        false => None,
    };
    let draft = draft.map(|draft| DraftOptions { pretend: args.accept, ..draft });
    let mut bench = Bench::new(adapters::session(&adapters, &model, &options, &loader)?, context);
    let first = bench.first_tokens(args.prompt.first().copied().unwrap_or(1).max(1))?;
    let mut measured = Vec::new();
    for test in tests {
        measured.push(bench.test(test, args.repetitions)?);
        if let Some(draft) = draft.clone().filter(|_| !test.prefill) {
            measured.push(bench.drafted(test, args.repetitions, draft)?);
        }
    }
    let queueing = bench.queueing()?;
    let bit_identical = draft.as_ref().map(|_| bench.bit_identical()).transpose()?;
    let profile = if args.profile { profile::profile(&mut bench, draft)? } else { Vec::new() };
    let growth = match &args.growth {
        Some(path) => {
            let inputs = growth::Inputs {
                gguf: &gguf,
                loader: &loader,
                mmproj: args.mmproj.as_deref(),
                repetitions: args.repetitions,
            };
            let growth = growth::measure(&mut bench, &inputs)?;
            growth.write(path, &args.model, model.device().name())?;
            Some(growth)
        }
        None => None,
    };
    let agreement = match args.no_agreement {
        true => Vec::new(),
        false => agreement::agreement(stores, model.device())?,
    };
    let facts = report::Facts {
        model: &args.model,
        adapter: model.device().name().to_owned(),
        cache: loader.options.cache,
        context,
        tuning: match model.device() {
            Device::Gpu(gpu) => changed_constants(gpu.facts().tuning),
            Device::Cpu => BTreeMap::new(),
        },
        load,
        first,
        queueing,
        gpu_bytes: bench.gpu_bytes(),
        table_on_gpu: model.table_on_gpu(),
        bit_identical,
        growth,
        agreement,
    };
    if args.json {
        return print_json(&report::as_json(&facts, &measured, &profile));
    }
    print(&report::as_text(&facts, &measured, &profile))
}

fn bench_parallel(place: Location, args: &BenchArgs) -> Result<()> {
    let one = |all: &[usize]| all.first().copied().unwrap_or(1).max(1);
    let lengths = parallel::Lengths {
        prompt: one(&args.prompt),
        generate: one(&args.generate),
        long_prompt: args.long_prompt,
    };
    let context = Some(lengths.context());
    let loader = Loader::new(place, &args.device, context, CacheType::F16);
    let (model, _) = loader.load()?;
    let streams: Vec<usize> = args.parallel.iter().map(|streams| streams.get()).collect();
    if args.http {
        let load = |streams, is_drawn| http::Load {
            streams,
            requests: args.repetitions.max(1),
            prompt: lengths.prompt,
            generate: lengths.generate,
            is_drawn,
        };
        let loads: Vec<http::Load> = streams
            .iter()
            .flat_map(|streams| [false, true].map(|is_drawn| load(*streams, is_drawn)))
            .collect();
        let compared = http::compare(loader.location, model, loader.options, &loads)?;
        return match args.json {
            true => print_json(&http::as_json(&args.model, &compared)),
            false => print(&http::as_text(&compared)),
        };
    }
    let options = SchedulerOptions {
        cache: loader.options.cache,
        batch_invariant: args.batch_invariant.then_some(true),
        ..SchedulerOptions::default()
    };
    let adapters = parallel::random_adapters(&model, args.lora_rank, args.adapter_count)?;
    let load = parallel::Load { streams: &streams, lengths, adapters: &adapters };
    let measured = parallel::measure(&model, &options, &load, args.profile)?;
    if args.json {
        return print_json(&parallel::as_json(&args.model, lengths, &measured));
    }
    print(&parallel::as_text(&measured))
}

fn share(text: &str) -> Result<f32, &'static str> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or("give a number from 0 to 1")
}

/// Prefill and decode at every depth.
fn tests(args: &BenchArgs) -> Vec<Test> {
    let mut tests = Vec::new();
    for depth in &args.depth {
        let prompts = args.prompt.iter().map(|tokens| (true, tokens));
        let replies = args.generate.iter().map(|tokens| (false, tokens));
        for (prefill, tokens) in prompts.chain(replies).filter(|(_, tokens)| **tokens > 0) {
            tests.push(Test { prefill, tokens: *tokens, depth: *depth });
        }
    }
    tests
}
