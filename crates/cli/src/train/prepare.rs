//! From arguments to a run.

use anyhow::Result;
use pollster::block_on;
use rullama_runtime::{Model, model::CacheType};
use rullama_train::{
    AdapterOptions, Dataset, Run, RunOptions, Schedule, Settings,
    dataset::{DataOptions, preview as spans},
    defaults, fresh,
};

use super::TrainArgs;
use crate::{
    adapters,
    load::Loader,
    locate::Stores,
    output::{note, print, safe_lines},
};

pub(super) fn model(stores: &Stores, args: &TrainArgs) -> Result<Model> {
    let loader = Loader::new(stores.find(&args.model)?, &args.device, Some(1), CacheType::F16);
    // Who wants gradients compares them.
    let loader = if args.watching.grads.is_some() { loader.exact() } else { loader };
    Ok(loader.load()?.0)
}

fn dataset(model: &Model, args: &TrainArgs, text: &str) -> Result<Dataset> {
    let options = DataOptions { raw: args.data_options.raw, longest: Some(args.data_options.seq) };
    let data = Dataset::of_lines(model, text, options)?;
    if data.cut > 0 {
        let (cut, seq) = (data.cut, args.data_options.seq);
        note(&format!(
            "{cut} examples are longer than {seq} tokens and were truncated; raise --seq to keep more"
        ));
    }
    if data.dropped > 0 {
        note(&format!("{} of them had no tokens left to learn and were skipped", data.dropped));
    }
    Ok(data)
}

pub(super) fn run(model: &Model, args: &TrainArgs, text: &str) -> Result<Run> {
    let learning = &args.learning;
    let data = dataset(model, args, text)?;
    let (train, aside) = data.split(args.watching.eval_split, learning.seed)?;
    let adapter = match &args.adapter.init {
        Some(path) => adapters::read_for_update(path)?,
        None => {
            let rank = args.adapter.rank;
            let options = AdapterOptions {
                rank,
                alpha: args.adapter.alpha.unwrap_or_else(|| defaults::alpha(rank)),
                targets: args.adapter.targets.clone(),
                seed: learning.seed,
            };
            fresh(model, &options)?
        }
    };
    let batch = learning.batch.unwrap_or_else(|| defaults::batch(train.len()));
    let batch = batch * learning.accumulate;
    let options = RunOptions {
        schedule: schedule_of(args, train.len(), batch),
        settings: Settings {
            dropout: learning.dropout,
            clip: (!learning.no_clip).then_some(learning.clip),
            decay: learning.weight_decay,
            memory: Some(learning.memory.unwrap_or(defaults::MEMORY)),
            ..Settings::default()
        },
        batch,
        pack: args.data_options.pack.then_some(args.data_options.seq),
        tokens: None,
        seed: learning.seed,
        evaluate: args.watching.eval_every,
        patience: args.watching.early_stop,
    };
    Ok(block_on(Run::new(model, &adapter, (train, aside), options))?)
}

fn schedule_of(args: &TrainArgs, examples: usize, batch: usize) -> Schedule {
    let learning = &args.learning;
    Schedule {
        rate: learning.lr,
        warmup: learning.warmup,
        shape: learning.schedule.into(),
        steps: learning.steps.unwrap_or_else(|| defaults::steps(examples, learning.epochs, batch)),
    }
}

/// What is trained on, as text: given spans as they are, learned ones between marks.
pub(super) fn preview(model: &Model, args: &TrainArgs, text: &str, count: usize) -> Result<()> {
    let data = dataset(model, args, text)?;
    let mut shown = String::new();
    for (number, example) in data.examples.iter().enumerate().take(count) {
        let (tokens, targets) = (example.ids.len(), example.targets());
        shown += &format!("example {}: {tokens} tokens, {targets} learned\n", number + 1);
        for span in spans(model, example)? {
            let text = safe_lines(&span.text);
            shown += &if span.learned { format!("⟦{text}⟧") } else { text };
        }
        shown += "\n\n";
    }
    let all: usize = data.examples.iter().map(|example| example.ids.len()).sum();
    shown += &format!("{} examples, {all} tokens in total\n", data.examples.len());
    print(&shown)
}
