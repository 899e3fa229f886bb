//! `rullama eval-adapter`: loss of a model on data with and without an adapter.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args as Group;
use pollster::block_on;
use rullama_runtime::model::CacheType;
use rullama_train::{
    Dataset, Example, Settings, Shape, Trainer,
    dataset::{DataOptions, largest},
    defaults,
};
use serde_json::json;

use super::files::read_text;
use crate::{
    adapters,
    load::{DeviceArgs, Loader, size},
    locate::Stores,
    output::{print, print_json, table},
};

#[derive(Debug, Group)]
pub(crate) struct CompareArgs {
    /// Name, path or URL
    model: String,
    /// A PEFT folder, or a safetensors or GGUF file
    adapter: PathBuf,
    /// JSON Lines, as for `rullama train`
    data: PathBuf,
    /// Maximum tokens per example; longer ones are truncated
    #[arg(long, value_name = "TOKENS", default_value_t = defaults::SEQUENCE)]
    seq: usize,
    /// Join prompts and completions as is, without the chat template
    #[arg(long)]
    raw: bool,
    /// GPU memory to use, 8 GB if not given
    #[arg(long, value_name = "BYTES", value_parser = size)]
    memory: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

pub(crate) fn compare(stores: &Stores, args: &CompareArgs) -> Result<()> {
    let text = read_text(&args.data)?;
    let adapter = adapters::read(&args.adapter)?;
    let loader = Loader::new(stores.find(&args.model)?, &args.device, Some(1), CacheType::F16);
    let (model, _) = loader.exact().load()?;
    let options = DataOptions { raw: args.raw, longest: Some(args.seq) };
    let data = Dataset::of_lines(&model, &text, options)?;
    let (tokens, targets) = largest(&data.examples);
    let memory = Some(args.memory.unwrap_or(defaults::MEMORY));
    let settings = Settings { memory, ..Settings::default() };
    let shape = Shape { tokens, targets };
    let mut trainer = block_on(Trainer::new(&model, &adapter, shape, settings))?;

    let mut losses = Vec::new();
    for example in &data.examples {
        let base = block_on(trainer.base_loss_of(&[example]))?;
        let adapted = block_on(trainer.loss_of(&[example]))?;
        losses.push((example, base, adapted));
    }
    let all: usize = data.examples.iter().map(Example::targets).sum();
    let mean = |of: fn(&(&Example, f64, f64)) -> f64| -> f64 {
        let sum: f64 = losses.iter().map(|one| of(one) * one.0.targets() as f64).sum();
        sum / all.max(1) as f64
    };
    let (base, adapted) = (mean(|one| one.1), mean(|one| one.2));
    let better = losses.iter().filter(|(_, base, adapted)| adapted < base).count();
    if args.json {
        return print_json(&json!({
            "examples": losses.len(),
            "tokens": all,
            "base_loss": base,
            "adapted_loss": adapted,
            "better": better,
            "each": losses.iter().map(|(_, base, adapted)| json!([base, adapted])).collect::<Vec<_>>(),
        }));
    }
    let row = |name: &str, loss: f64| {
        vec![name.into(), format!("{loss:.4}"), format!("{:.3}", loss.exp())]
    };
    let rows = [
        vec!["".into(), "LOSS".into(), "PERPLEXITY".into()],
        row("base", base),
        row("adapted", adapted),
    ];
    let count = losses.len();
    print(&format!("{}{better} of {count} examples are predicted better\n", table(&rows)))
}
