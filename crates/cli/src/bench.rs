//! `rullama bench`: how fast a model reads and writes on this machine.

mod measure;
mod profile;
mod random;
mod report;

use anyhow::{Result, bail};
use clap::Args as Group;
use rullama_runtime::{model::CacheType, session::SessionOptions};

use crate::{
    adapters::{AdapterArgs, Chosen},
    load::{DeviceArgs, Loader, size},
    locate::Stores,
    output::{print, print_json},
    train::{self, bench::TrainBench},
};
use measure::{Bench, Test};

#[derive(Debug, Group)]
pub(crate) struct BenchArgs {
    /// Name, path or URL
    pub(crate) model: String,
    /// Tokens of the prompts to be read; 0 leaves reading out
    #[arg(short = 'p', long, value_name = "TOKENS", default_value = "512", value_delimiter = ',')]
    prompt: Vec<usize>,
    /// Tokens to be written; 0 leaves writing out
    #[arg(short = 'n', long, value_name = "TOKENS", default_value = "128", value_delimiter = ',')]
    generate: Vec<usize>,
    /// Tokens that are in the context before
    #[arg(short = 'd', long, value_name = "TOKENS", default_value = "0", value_delimiter = ',')]
    depth: Vec<usize>,
    /// Measured repetitions of each test; one more goes before them and is not counted
    #[arg(short = 'r', long, value_name = "N", default_value_t = 5)]
    repetitions: usize,
    /// Measure how fast an adapter learns instead: pairs on all projections, sequences of -p tokens
    #[arg(long)]
    train: bool,
    /// The inner size of the pairs that learn
    #[arg(long, default_value_t = 16, requires = "train")]
    rank: usize,
    /// GPU memory for training: as many layers are computed twice as that asks for
    #[arg(long, value_name = "BYTES", value_parser = size, default_value = "8GiB", requires = "train")]
    memory: u64,
    /// Also print how long each kernel takes, where the GPU has timestamps
    #[arg(long)]
    profile: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    adapters: AdapterArgs,
    /// Measure with an adapter of random numbers and this rank beside all projections of all layers
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
            rank: args.rank,
            memory: args.memory,
            repetitions: args.repetitions,
            json: args.json,
        };
        return train::bench::bench(stores, &test, &args.device);
    }
    let tests = tests(args);
    if tests.is_empty() || args.repetitions == 0 {
        bail!("there is nothing to measure; give -p, -n and -r more than 0");
    }
    let context = tests.iter().map(Test::context).max().unwrap_or(1);
    let place = stores.find(&args.model)?;
    let adapters = Chosen::new(&place, &args.adapters)?;
    let loader = Loader::new(place, &args.device, Some(context), CacheType::F16);
    let (model, load) = loader.load()?;
    let adapters = adapters.and(args.lora_rank.map(|rank| random::adapter(&model, rank)));
    let options =
        SessionOptions { context: Some(context), cache: loader.cache, ..SessionOptions::default() };
    let mut bench = Bench::new(adapters.session(&model, &options, &loader)?, context);
    let first = bench.first_tokens(args.prompt.first().copied().unwrap_or(1).max(1))?;
    let mut measured = Vec::new();
    for test in tests {
        measured.push(bench.test(test, args.repetitions)?);
    }
    let profile = if args.profile { profile::profile(&mut bench)? } else { Vec::new() };
    let facts = report::Facts {
        model: &args.model,
        adapter: model.device().name().to_owned(),
        cache: loader.cache,
        context,
        load,
        first,
        gpu_bytes: bench.gpu_bytes(),
        table_on_gpu: model.table_on_gpu(),
    };
    if args.json {
        return print_json(&report::as_json(&facts, &measured, &profile));
    }
    print(&report::as_text(&facts, &measured, &profile))
}

/// Reading and writing at every depth.
fn tests(args: &BenchArgs) -> Vec<Test> {
    let mut tests = Vec::new();
    for depth in &args.depth {
        let prompts = args.prompt.iter().map(|tokens| (true, tokens));
        let answers = args.generate.iter().map(|tokens| (false, tokens));
        for (reads, tokens) in prompts.chain(answers).filter(|(_, tokens)| **tokens > 0) {
            tests.push(Test { reads, tokens: *tokens, depth: *depth });
        }
    }
    tests
}
