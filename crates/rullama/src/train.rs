//! Training LoRA adapters.

use std::path::Path;

use pollster::block_on;
use rullama_adapter::Adapter;
use rullama_train::{
    AdapterOptions, Dataset, Event, Run, RunOptions, Schedule, ScheduleShape, Settings,
    dataset::DataOptions, defaults, fresh,
};

use crate::{adapter::write_adapter, error::Error, model::Model};

/// Training options; the defaults are those of `rullama train`.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainOptions {
    /// The adapter to continue training; `None` = a new one.
    pub init: Option<Adapter>,
    /// LoRA rank of a new adapter.
    pub rank: usize,
    /// LoRA alpha of a new adapter, which scales it by alpha / rank; `None` = twice the rank.
    pub alpha: Option<f32>,
    /// Weights to adapt, such as `q_proj` or `attn_q`; all attention and feed-forward weights if there are none.
    pub targets: Vec<String>,
    /// Optimizer steps; `None` = `epochs` passes over the data.
    pub steps: Option<u32>,
    /// Passes over the data.
    pub epochs: f64,
    /// Peak learning rate.
    pub rate: f64,
    /// Learning rate schedule after the warm-up.
    pub schedule: ScheduleShape,
    /// Steps in which the learning rate rises from zero.
    pub warmup: u32,
    /// Decoupled weight decay.
    pub weight_decay: f32,
    /// Maximum gradient norm.
    pub clip: Option<f32>,
    /// Sequences per batch; `None` = 4, or all if there are fewer.
    pub batch: Option<usize>,
    /// Batches per step.
    pub accumulate: usize,
    /// LoRA dropout: share of the adapter's inputs set to zero.
    pub dropout: f32,
    /// Seed of data order, dropout and a new adapter.
    pub seed: u64,
    /// GPU memory to use, in bytes; layers that do not fit are recomputed in the backward pass.
    pub memory: u64,
    /// Maximum tokens per sequence; longer examples are truncated.
    pub sequence: usize,
    /// Whether short examples share sequences; they do not attend to each other.
    pub pack: bool,
    /// Whether prompts and completions are joined without the chat template.
    pub raw: bool,
    /// Share of the examples held out for evaluation.
    pub eval_split: f64,
    /// Steps between evaluations.
    pub eval_every: u32,
    /// Evaluations without improvement after which training ends.
    pub patience: Option<u32>,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self {
            init: None,
            rank: defaults::RANK,
            alpha: None,
            targets: Vec::new(),
            steps: None,
            epochs: defaults::EPOCHS,
            rate: defaults::RATE,
            schedule: ScheduleShape::default(),
            warmup: 0,
            weight_decay: 0.0,
            clip: Some(1.0),
            batch: None,
            accumulate: 1,
            dropout: 0.0,
            seed: 0,
            memory: defaults::MEMORY,
            sequence: defaults::SEQUENCE,
            pack: false,
            raw: false,
            eval_split: 0.0,
            eval_every: defaults::EVALUATE,
            patience: None,
        }
    }
}

impl TrainOptions {
    /// Reads examples, one JSON object per line: `{"messages":[…]}`, `{"prompt":…,"completion":…}` or `{"text":…}`.
    ///
    /// # Errors
    /// If a line is invalid; the error has its number.
    pub fn dataset(&self, model: &rullama_runtime::Model, lines: &str) -> Result<Dataset, Error> {
        let options = DataOptions { raw: self.raw, longest: Some(self.sequence) };
        Ok(Dataset::of_lines(model, lines, options)?)
    }

    /// Prepares training on examples.
    ///
    /// # Errors
    /// If an option is invalid, the adapter does not fit the model, or memory is insufficient.
    pub fn start(&self, model: &rullama_runtime::Model, data: Dataset) -> Result<Run, Error> {
        let (train, aside) = data.split(self.eval_split, self.seed)?;
        let adapter = match &self.init {
            Some(adapter) => adapter.clone(),
            None => {
                let (rank, seed) = (self.rank, self.seed);
                let alpha = self.alpha.unwrap_or_else(|| defaults::alpha(rank));
                fresh(model, &AdapterOptions { rank, alpha, targets: self.targets.clone(), seed })?
            }
        };
        let batch = self.batch.unwrap_or_else(|| defaults::batch(train.len()));
        let batch = batch * self.accumulate;
        let steps = || defaults::steps(train.len(), self.epochs, batch);
        let options = RunOptions {
            schedule: Schedule {
                rate: self.rate,
                warmup: self.warmup,
                shape: self.schedule,
                steps: self.steps.unwrap_or_else(steps),
            },
            settings: Settings {
                dropout: self.dropout,
                clip: self.clip,
                decay: self.weight_decay,
                memory: Some(self.memory),
                ..Settings::default()
            },
            batch,
            pack: self.pack.then_some(self.sequence),
            tokens: None,
            seed: self.seed,
            evaluate: self.eval_every,
            patience: self.patience,
        };
        Ok(block_on(Run::new(model, &adapter, (train, aside), options))?)
    }
}

/// A training run: an iterator that trains one step per item.
///
/// ```
/// use rullama::{Model, TrainOptions, Training};
///
/// let model = Model::open("demo")?;
/// let data = r#"{"prompt":"What is the capital of Atlantis?","completion":"Poseidonis."}"#;
/// let options = TrainOptions { rank: 2, steps: Some(2), rate: 3e-3, ..TrainOptions::default() };
/// let mut training = Training::start(&model, data, &options)?;
/// for event in &mut training {
///     println!("{:?}", event?);
/// }
/// let adapter = training.adapter()?;
/// let mut session = model.session()?;
/// session.set_adapters(vec![(adapter, 1.0)])?;
/// # Ok::<(), rullama::Error>(())
/// ```
#[derive(Debug)]
pub struct Training {
    run: Run,
    model: String,
}

impl Training {
    /// Prepares training on lines of JSON: `{"messages":[…]}`, `{"prompt":…,"completion":…}` or `{"text":…}`.
    ///
    /// # Errors
    /// If a line or an option is invalid, or memory is insufficient.
    pub fn start(model: &Model, lines: &str, options: &TrainOptions) -> Result<Self, Error> {
        let data = options.dataset(model.runtime(), lines)?;
        Ok(Self { run: options.start(model.runtime(), data)?, model: model.name().into() })
    }

    /// The next step, async; `None` after [`Event::Done`].
    ///
    /// # Errors
    /// If the device fails, or the loss is NaN.
    pub async fn next_async(&mut self) -> Result<Option<Event>, Error> {
        Ok(self.run.next().await?)
    }

    /// The adapter in its current state.
    ///
    /// # Errors
    /// If the device fails.
    pub fn adapter(&self) -> Result<Adapter, Error> {
        Ok(block_on(self.run.trainer().adapter())?)
    }

    /// Writes the adapter as a PEFT folder, which [`crate::OpenOptions::adapters`] and PEFT can read.
    ///
    /// # Errors
    /// If the device fails, or the folder cannot be written.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), Error> {
        write_adapter(&self.adapter()?, &self.model, folder)
    }

    /// The underlying run of the crate `rullama-train`: losses, checkpoints.
    pub fn run(&self) -> &Run {
        &self.run
    }
}

impl Iterator for Training {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        block_on(self.next_async()).transpose()
    }
}
