//! A training run: batches, learning rates, evaluation and early stopping.

use std::collections::VecDeque;

use rullama_adapter::Adapter;
use rullama_runtime::Model;

use crate::{
    Checkpoint, Schedule, Trainer,
    adapters::{Slot, fitting},
    checkpoint::About,
    dataset::{Example, fingerprint, largest, packed},
    error::TrainError,
    memory::{Need, Shape, need},
    order,
    trainer::Settings,
};

/// Options of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// Learning-rate schedule and number of steps.
    pub schedule: Schedule,
    /// Optimizer settings.
    pub settings: Settings,
    /// Sequences per step.
    pub batch: usize,
    /// If set, short examples are packed into sequences of this many tokens.
    pub pack: Option<usize>,
    /// Sequences are padded to this many tokens, or to the longest sequence.
    pub tokens: Option<usize>,
    /// Seed of the shuffles and of dropout.
    pub seed: u64,
    /// Steps between two evaluations.
    pub evaluate: u32,
    /// Ends the run after this many evaluations without an improvement.
    pub patience: Option<u32>,
}

/// Report of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepReport {
    /// Steps before it.
    pub step: u32,
    /// The mean loss before its update.
    pub loss: f64,
    /// Its learning rate.
    pub rate: f64,
    /// Tokens of its sequences.
    pub tokens: usize,
    /// Targets among them.
    pub targets: usize,
}

/// An event of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// A step was taken.
    Step(StepReport),
    /// The held-out examples were evaluated.
    Evaluated {
        /// Steps so far.
        step: u32,
        /// Their mean loss.
        loss: f64,
        /// Whether it is the lowest so far.
        best: bool,
    },
    /// The run has ended; no event follows.
    Done {
        /// Steps taken.
        step: u32,
        /// The loss after the last step, of the batch that would have come next.
        loss: f64,
        /// Whether it ended early because evaluations did not improve.
        early: bool,
    },
}

/// A training run, driven by [`Run::next`]; it pauses until the next call.
#[derive(Debug)]
pub struct Run {
    trainer: Trainer,
    options: RunOptions,
    train: Vec<Example>,
    held_out: Vec<Example>,
    about: About,
    pending: VecDeque<Event>,
    done: bool,
}

impl Run {
    /// Prepares a run of an adapter on (training, held-out) examples.
    ///
    /// # Errors
    /// If the adapter does not fit the model, there are no targets, or memory does not suffice.
    pub async fn new(
        model: &Model,
        adapter: &Adapter,
        (train, held_out): (Vec<Example>, Vec<Example>),
        options: RunOptions,
    ) -> Result<Self, TrainError> {
        if train.is_empty() {
            return Err(TrainError::NoTargets);
        }
        if options.batch == 0 {
            let (option, value) = ("the batch", "0".into());
            return Err(TrainError::Option { option, value, wanted: "choose 1 or more" });
        }
        let data = fingerprint(&train);
        let (train, held_out, shape) = sequences((train, held_out), &options);
        let settings = with_micro_batch(&train, shape, &options);
        let trainer = Trainer::new(model, adapter, shape, settings).await?;
        let about = About {
            steps: 0,
            model: model.fingerprint().iter().map(|byte| format!("{byte:02x}")).collect(),
            data,
            options: reproducibility_key(&options),
            losses: Vec::new(),
            evaluations: Vec::new(),
        };
        let pending = VecDeque::new();
        Ok(Self { trainer, options, train, held_out, about, pending, done: false })
    }

    /// GPU memory such a run would need.
    ///
    /// # Errors
    /// If the adapter does not fit the model, or memory does not suffice.
    pub fn need(
        model: &Model,
        adapter: &Adapter,
        sides: (Vec<Example>, Vec<Example>),
        options: &RunOptions,
    ) -> Result<Need, TrainError> {
        let (train, _, shape) = sequences(sides, options);
        let slots: Vec<Slot> = fitting(model, adapter)?.into_iter().map(Slot::of).collect();
        need(model, &slots, shape, &with_micro_batch(&train, shape, options))
    }

    /// Continues from a checkpoint.
    ///
    /// # Errors
    /// If it belongs to another model, other data or other options.
    pub async fn resume(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainError> {
        let states = self.trainer.state_lengths();
        checkpoint.check(&self.about, &states)?;
        for (name, length) in states {
            let bytes = checkpoint.state(&name).await?;
            self.trainer.write_bytes(&name, length, &bytes);
        }
        self.trainer.set_steps(checkpoint.about.steps);
        self.about = checkpoint.about.clone();
        Ok(())
    }

    /// One piece of the checkpoint file, or `None` after the last. Pieces are requested one after the other, so that the host holds
    /// one at a time.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn checkpoint_piece(&self, number: usize) -> Result<Option<Vec<u8>>, TrainError> {
        let states = self.trainer.state_lengths();
        let Some(state) = number.checked_sub(1) else {
            return self.about.header(&states).map(Some);
        };
        let Some((name, length)) = states.get(state) else { return Ok(None) };
        self.trainer.read_bytes(name, *length).await.map(Some)
    }

    /// The trainer.
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// The learning-rate schedule.
    pub fn schedule(&self) -> Schedule {
        self.options.schedule
    }

    /// The training sequences.
    pub fn sequences(&self) -> &[Example] {
        &self.train
    }

    /// The loss before each step so far, including those before a checkpoint.
    pub fn losses(&self) -> &[f64] {
        &self.about.losses
    }

    /// Losses of the held-out examples, each with the number of steps before it.
    pub fn evaluations(&self) -> &[(u32, f64)] {
        &self.about.evaluations
    }

    /// Gradients of the next step, without an update: the step itself computes them again.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn next_gradients(
        &mut self,
    ) -> Result<Vec<(String, [usize; 2], Vec<f32>)>, TrainError> {
        let (batch, seed) = (self.batch(), self.dropout_seed());
        let examples: Vec<&Example> = batch.iter().map(|i| &self.train[*i]).collect();
        self.trainer.gradients_of(&examples, seed).await?;
        let gradients = self.trainer.gradients().await;
        self.trainer.clear_gradients();
        gradients
    }

    /// Takes the next step or evaluates; `None` after the run has ended.
    ///
    /// # Errors
    /// If the device fails, or the loss is not finite.
    pub async fn next(&mut self) -> Result<Option<Event>, TrainError> {
        if let Some(event) = self.pending.pop_front() {
            self.done |= matches!(event, Event::Done { .. });
            return Ok(Some(event));
        }
        if self.done {
            return Ok(None);
        }
        let step = self.trainer.steps();
        if step >= self.options.schedule.steps {
            self.end(false).await?;
            return Box::pin(self.next()).await;
        }
        let (batch, seed) = (self.batch(), self.dropout_seed());
        let examples: Vec<&Example> = batch.iter().map(|i| &self.train[*i]).collect();
        let tokens = examples.iter().map(|example| example.ids.len()).sum();
        let targets = examples.iter().map(|example| example.targets()).sum();
        let loss = self.trainer.gradients_of(&examples, seed).await?;
        if !loss.is_finite() {
            return Err(TrainError::Diverged { step: step + 1, loss });
        }
        let rate = self.options.schedule.rate_of(step);
        self.trainer.update(rate)?;
        self.about.steps = step + 1;
        self.about.losses.push(loss);
        let every = self.options.evaluate.max(1);
        if !self.held_out.is_empty() && (step + 1).is_multiple_of(every) {
            self.evaluate().await?;
        }
        Ok(Some(Event::Step(StepReport { step, loss, rate, tokens, targets })))
    }

    async fn evaluate(&mut self) -> Result<(), TrainError> {
        let held_out: Vec<&Example> = self.held_out.iter().collect();
        let (loss, step) = (self.trainer.loss_of(&held_out).await?, self.trainer.steps());
        let before = self.about.evaluations.iter().map(|(_, loss)| *loss);
        let best = before.fold(f64::INFINITY, f64::min) > loss;
        self.about.evaluations.push((step, loss));
        self.pending.push_back(Event::Evaluated { step, loss, best });
        if self.out_of_patience() {
            self.end(true).await?;
        }
        Ok(())
    }

    /// Whether the last `patience` evaluations did not improve on the best one before them.
    fn out_of_patience(&self) -> bool {
        let Some(patience) = self.options.patience.map(|patience| patience.max(1) as usize) else {
            return false;
        };
        let losses: Vec<f64> = self.about.evaluations.iter().map(|(_, loss)| *loss).collect();
        let Some(older) = losses.len().checked_sub(patience).filter(|older| *older > 0) else {
            return false;
        };
        let best = losses[..older].iter().copied().fold(f64::INFINITY, f64::min);
        losses[older..].iter().all(|loss| *loss >= best)
    }

    async fn end(&mut self, early: bool) -> Result<(), TrainError> {
        let batch = self.batch();
        let examples: Vec<&Example> = batch.iter().map(|i| &self.train[*i]).collect();
        let (loss, step) = (self.trainer.loss_of(&examples).await?, self.trainer.steps());
        self.pending.push_back(Event::Done { step, loss, early });
        Ok(())
    }

    /// The indices of the next step's sequences.
    fn batch(&self) -> Vec<usize> {
        order::batch(self.train.len(), self.options.batch, self.trainer.steps(), self.options.seed)
    }

    fn dropout_seed(&self) -> u32 {
        let stream = u64::from(self.trainer.steps()) + (1 << 32);
        order::Random::new(self.options.seed, stream).next() as u32
    }
}

/// Training and held-out examples as sequences, and their sizes.
fn sequences(
    (train, held_out): (Vec<Example>, Vec<Example>),
    options: &RunOptions,
) -> (Vec<Example>, Vec<Example>, Shape) {
    let (train, held_out) = match options.pack {
        Some(tokens) => {
            let most = Shape { tokens, targets: usize::MAX };
            (packed(&train, most), packed(&held_out, most))
        }
        None => (train, held_out),
    };
    let (tokens, targets) = largest(&train);
    let (more_tokens, more_targets) = largest(&held_out);
    let shape = Shape {
        tokens: tokens.max(more_tokens).max(options.tokens.unwrap_or(0)),
        targets: targets.max(more_targets),
    };
    (train, held_out, shape)
}

/// The settings with a micro-batch that holds an average batch: as many sequences of the largest shape, so that little of a pass is padding.
fn with_micro_batch(train: &[Example], shape: Shape, options: &RunOptions) -> Settings {
    let tokens: usize = train.iter().map(|example| example.ids.len()).sum();
    let padded = train.len() * shape.tokens;
    let micro_batch = (tokens * options.batch).div_ceil(padded.max(1)).clamp(1, options.batch);
    Settings { micro_batch, ..options.settings }
}

/// The options that affect a run's result, as text; with a constant rate the number of steps is not among them.
fn reproducibility_key(options: &RunOptions) -> String {
    let RunOptions { schedule, settings, batch, pack, seed, .. } = options;
    let steps = match schedule.shape {
        crate::ScheduleShape::Constant => String::new(),
        _ => format!(" over {} steps", schedule.steps),
    };
    format!(
        "rate {} {:?}{steps}, warm-up {}, decay {}, clip {:?}, dropout {}, batch {batch}, pack {pack:?}, seed {seed}",
        schedule.rate,
        schedule.shape,
        schedule.warmup,
        settings.decay,
        settings.clip,
        settings.dropout,
    )
}
