//! Prepares a run from the arguments.

use anyhow::Result;
use rullama::{TrainOptions, read_adapter};
use rullama_runtime::{Model, model::CacheType};
use rullama_train::{Dataset, Run, dataset::preview as spans, defaults};

use super::TrainArgs;
use crate::{
    load::Loader,
    locate::Stores,
    output::{note, print, safe_lines},
};

pub(super) fn model(stores: &Stores, args: &TrainArgs) -> Result<Model> {
    let loader = Loader::new(stores.find(&args.model)?, &args.device, Some(1), CacheType::F16);
    // Gradients are written for numerical comparisons.
    let loader = if args.watching.grads.is_some() { loader.exact() } else { loader };
    Ok(loader.load()?.0)
}

fn dataset(model: &Model, args: &TrainArgs, options: &TrainOptions, text: &str) -> Result<Dataset> {
    let data = options.dataset(model, text)?;
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
    let options = options(args)?;
    let data = dataset(model, args, &options, text)?;
    Ok(options.start(model, data)?)
}

fn options(args: &TrainArgs) -> Result<TrainOptions> {
    let TrainArgs { adapter, learning, data_options, watching, .. } = args;
    Ok(TrainOptions {
        // The adapter is not protected: training may continue it and replace it.
        init: adapter.init.as_ref().map(read_adapter).transpose()?,
        rank: adapter.rank,
        alpha: adapter.alpha,
        targets: adapter.targets.clone(),
        steps: learning.steps,
        epochs: learning.epochs,
        rate: learning.lr,
        schedule: learning.schedule.into(),
        warmup: learning.warmup,
        weight_decay: learning.weight_decay,
        clip: (!learning.no_clip).then_some(learning.clip),
        batch: learning.batch,
        accumulate: learning.accumulate,
        dropout: learning.dropout,
        seed: learning.seed,
        memory: learning.memory.unwrap_or(defaults::MEMORY),
        sequence: data_options.seq,
        pack: data_options.pack,
        raw: data_options.raw,
        eval_split: watching.eval_split,
        eval_every: watching.eval_every,
        patience: watching.early_stop,
    })
}

/// Prints examples as text, with targets between ⟦ and ⟧.
pub(super) fn preview(model: &Model, args: &TrainArgs, text: &str, count: usize) -> Result<()> {
    let data = dataset(model, args, &options(args)?, text)?;
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
