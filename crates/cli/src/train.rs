//! `rullama train`: trains a LoRA adapter on JSON Lines.

pub(crate) mod bench;
mod compare;
mod files;
mod plot;
mod prepare;
mod screen;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args as Group, ValueEnum};
use pollster::block_on;
use rullama_train::{Event, Run, ScheduleShape, defaults};

use crate::{
    interrupt,
    load::{DeviceArgs, size},
    locate::Stores,
    output::note,
};
pub(crate) use compare::{CompareArgs, compare};
use files::{Folder, Log};
use screen::{RunEnd, Screen};

#[derive(Debug, Group)]
pub(crate) struct TrainArgs {
    /// Name, path or URL
    model: String,
    /// JSON Lines: {"messages":[…]}, {"prompt":…,"completion":…}, {"text":…} or {"ids":[…],"n_prompt":k}
    data: PathBuf,
    /// Folder for the adapter (PEFT format), checkpoints, log and plot
    #[arg(long, value_name = "DIR", required_unless_present = "preview")]
    out: Option<PathBuf>,
    /// Resume from the checkpoint in the folder, if there is one
    #[arg(long)]
    resume: bool,
    /// Show this many examples as the model is trained on them, then exit
    #[arg(long, value_name = "N")]
    preview: Option<usize>,
    /// Print JSON at the end
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    adapter: AdapterArgs,
    #[command(flatten)]
    learning: LearningArgs,
    #[command(flatten)]
    data_options: DataArgs,
    #[command(flatten)]
    watching: WatchingArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

#[derive(Debug, Group)]
#[command(next_help_heading = "Adapter")]
struct AdapterArgs {
    /// Start from this adapter: a PEFT folder, safetensors file or GGUF file
    #[arg(long, value_name = "PATH", conflicts_with_all = ["rank", "alpha", "targets"])]
    init: Option<PathBuf>,
    /// LoRA rank
    #[arg(long, default_value_t = defaults::RANK)]
    rank: usize,
    /// LoRA alpha, scales the adapter by alpha / rank; twice the rank if not given
    #[arg(long)]
    alpha: Option<f32>,
    /// Weights to adapt, such as q_proj,v_proj or attn_q,ffn_down; all attention and feed-forward weights if not given
    #[arg(long, value_delimiter = ',')]
    targets: Vec<String>,
}

#[derive(Debug, Group)]
#[command(next_help_heading = "Optimizer")]
struct LearningArgs {
    /// Optimizer steps; if not given, set by --epochs
    #[arg(long)]
    steps: Option<u32>,
    /// Passes over the data
    #[arg(long, default_value_t = defaults::EPOCHS, conflicts_with = "steps")]
    epochs: f64,
    /// Peak learning rate
    #[arg(long, default_value_t = defaults::RATE)]
    lr: f64,
    /// Learning rate schedule after the warm-up
    #[arg(long, value_enum, default_value_t)]
    schedule: ScheduleArg,
    /// Warm-up steps, in which the learning rate rises from zero
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    warmup: u32,
    /// Decoupled weight decay
    #[arg(long, default_value_t = 0.0)]
    weight_decay: f32,
    /// Maximum gradient norm
    #[arg(long, default_value_t = 1.0)]
    clip: f32,
    /// Do not clip gradients
    #[arg(long, conflicts_with = "clip")]
    no_clip: bool,
    /// Sequences per batch; 4, or all if there are fewer, if not given
    #[arg(long)]
    batch: Option<usize>,
    /// Accumulate gradients over this many batches per step
    #[arg(long, value_name = "N", default_value_t = 1)]
    accumulate: usize,
    /// LoRA dropout: share of the adapter's inputs set to zero
    #[arg(long, default_value_t = 0.0)]
    dropout: f32,
    /// Random seed for data order, dropout and a new adapter
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// GPU memory to use, 8 GB if not given; layers that do not fit are recomputed in the backward pass
    #[arg(long, value_name = "BYTES", value_parser = size)]
    memory: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum ScheduleArg {
    #[default]
    Cosine,
    Linear,
    Constant,
}

impl From<ScheduleArg> for ScheduleShape {
    fn from(arg: ScheduleArg) -> Self {
        match arg {
            ScheduleArg::Cosine => Self::Cosine,
            ScheduleArg::Linear => Self::Linear,
            ScheduleArg::Constant => Self::Constant,
        }
    }
}

#[derive(Debug, Group)]
#[command(next_help_heading = "Data")]
struct DataArgs {
    /// Maximum tokens per sequence; longer examples are truncated
    #[arg(long, value_name = "TOKENS", default_value_t = defaults::SEQUENCE)]
    seq: usize,
    /// Pack short examples into sequences of --seq tokens; they do not attend to each other
    #[arg(long)]
    pack: bool,
    /// Join prompts and completions as is, without the chat template
    #[arg(long)]
    raw: bool,
}

#[derive(Debug, Group)]
#[command(next_help_heading = "Evaluation and logging")]
struct WatchingArgs {
    /// Share of the examples held out for evaluation, such as 0.1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    eval_split: f64,
    /// Steps between evaluations
    #[arg(long, value_name = "STEPS", default_value_t = defaults::EVALUATE)]
    eval_every: u32,
    /// Stop after this many evaluations without improvement
    #[arg(long, value_name = "N")]
    early_stop: Option<u32>,
    /// Steps between checkpoints
    #[arg(long, value_name = "STEPS", default_value_t = 50)]
    checkpoint_every: u32,
    /// Loss log, one JSON line per step; log.jsonl in the folder if not given
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the gradients of the first step to this safetensors file
    #[arg(long, value_name = "FILE")]
    grads: Option<PathBuf>,
}

pub(crate) fn train(stores: &Stores, args: &TrainArgs) -> Result<()> {
    let text = files::read_text(&args.data)?;
    let model = prepare::model(stores, args)?;
    if let Some(count) = args.preview {
        return prepare::preview(&model, args, &text, count);
    }
    let folder = Folder::create(args.out.as_deref().unwrap_or(&args.data))?;
    interrupt::watch();
    let mut run = prepare::run(&model, args, &text)?;
    let resumed = if args.resume { folder.checkpoint()? } else { None };
    match &resumed {
        Some(checkpoint) => block_on(run.resume(checkpoint))?,
        None if args.resume => note("no checkpoint found, starting from the beginning"),
        None => {}
    }
    let log_file = args.watching.log.clone().unwrap_or_else(|| folder.file("log.jsonl"));
    let mut log = Log::begin(&log_file, &run)?;
    if let Some(grads) = args.watching.grads.as_ref().filter(|_| resumed.is_none()) {
        files::write_gradients(grads, &block_on(run.next_gradients())?)?;
    }
    let mut screen = Screen::new(run.schedule().steps, &run);
    let end = steps(args, &mut run, &folder, &mut log, &mut screen)?;
    screen.finish();
    folder.write_adapter(&block_on(run.trainer().adapter())?, &args.model)?;
    folder.write_plot(&run, &args.model)?;
    let Some(end) = end else {
        note(&format!("stopped; continue with --resume from {}", folder.file("").display()));
        return Err(interrupt::Interrupted.into());
    };
    folder.remove_checkpoint()?;
    screen::report(&run, end, &folder, args.json)
}

/// Trains until the end; `None` if Ctrl-C was pressed.
fn steps(
    args: &TrainArgs,
    run: &mut Run,
    folder: &Folder,
    log: &mut Log,
    screen: &mut Screen,
) -> Result<Option<RunEnd>> {
    let every = args.watching.checkpoint_every.max(1);
    while let Some(event) = block_on(run.next())? {
        log.write(&event, screen.seconds())?;
        screen.show(&event, run);
        match event {
            Event::Step(report) if (report.step + 1).is_multiple_of(every) => {
                folder.write_checkpoint(run)?;
            }
            Event::Done { step, loss, early } => return Ok(Some(RunEnd { step, loss, early })),
            _ => {}
        }
        if interrupt::pressed() {
            folder.write_checkpoint(run)?;
            return Ok(None);
        }
    }
    Ok(None)
}
