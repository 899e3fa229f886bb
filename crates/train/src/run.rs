//! A whole run: which sequences each step takes, rates, evaluation, and when it is enough.

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

/// How a run goes.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// Rates, and how many steps.
    pub schedule: Schedule,
    /// How adapters are updated.
    pub settings: Settings,
    /// Sequences of a step.
    pub batch: usize,
    /// Short examples share sequences of this many tokens.
    pub pack: Option<usize>,
    /// Sequences are padded to this many tokens; to the longest if it is not said.
    pub tokens: Option<usize>,
    /// Where orders and dropout come from.
    pub seed: u64,
    /// Steps between two evaluations.
    pub evaluate: u32,
    /// Evaluations without a better one before it, after which the run ends.
    pub patience: Option<u32>,
}

/// What one step was like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepReport {
    /// Updates before it.
    pub step: u32,
    /// The mean loss before its update.
    pub loss: f64,
    /// Its rate.
    pub rate: f64,
    /// Tokens that went through the model.
    pub tokens: usize,
    /// Of these, tokens that were learned.
    pub targets: usize,
}

/// Something that happened in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// A step was taken.
    Step(StepReport),
    /// The examples set aside were measured.
    Evaluated {
        /// Updates so far.
        step: u32,
        /// Their mean loss.
        loss: f64,
        /// Whether it is the best so far.
        best: bool,
    },
    /// The run has ended; nothing follows.
    Done {
        /// Updates.
        step: u32,
        /// The loss after the last update, of the sequences that would have come next.
        loss: f64,
        /// Whether it ended because evaluations got no better.
        early: bool,
    },
}

/// A run: ask for one event after the other. It pauses while none is requested.
#[derive(Debug)]
pub struct Run {
    trainer: Trainer,
    options: RunOptions,
    train: Vec<Example>,
    aside: Vec<Example>,
    about: About,
    pending: VecDeque<Event>,
    done: bool,
}

impl Run {
    /// Prepares a run of an adapter on examples; `aside` are measured only.
    ///
    /// # Errors
    /// If the adapter does not fit the model, there is nothing to learn, or there is no memory.
    pub async fn new(
        model: &Model,
        adapter: &Adapter,
        (train, aside): (Vec<Example>, Vec<Example>),
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
        let (train, aside, shape) = sequences((train, aside), &options);
        let trainer = Trainer::new(model, adapter, shape, options.settings).await?;
        let about = About {
            steps: 0,
            model: model.fingerprint().iter().map(|byte| format!("{byte:02x}")).collect(),
            data,
            options: decisive(&options),
            losses: Vec::new(),
            evaluations: Vec::new(),
        };
        let pending = VecDeque::new();
        Ok(Self { trainer, options, train, aside, about, pending, done: false })
    }

    /// What such a run would take on a GPU.
    ///
    /// # Errors
    /// If the adapter does not fit the model, or there is no memory.
    pub fn need(
        model: &Model,
        adapter: &Adapter,
        sides: (Vec<Example>, Vec<Example>),
        options: &RunOptions,
    ) -> Result<Need, TrainError> {
        let (_, _, shape) = sequences(sides, options);
        let slots: Vec<Slot> = fitting(model, adapter)?.into_iter().map(Slot::of).collect();
        need(model, &slots, shape, &options.settings)
    }

    /// Goes on where a checkpoint ended.
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

    /// A piece of the file that has everything a later run needs to go on from here; nothing after the last one. Asked for one
    /// after the other, the host holds one at a time.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn checkpoint_piece(&self, number: usize) -> Result<Option<Vec<u8>>, TrainError> {
        let states = self.trainer.state_lengths();
        let Some(state) = number.checked_sub(1) else {
            return self.about.beginning(&states).map(Some);
        };
        let Some((name, length)) = states.get(state) else { return Ok(None) };
        self.trainer.read_bytes(name, *length).await.map(Some)
    }

    /// The adapter that learns.
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// Its rates.
    pub fn schedule(&self) -> Schedule {
        self.options.schedule
    }

    /// Sequences that are learned from.
    pub fn sequences(&self) -> &[Example] {
        &self.train
    }

    /// The loss before each update so far, also of the runs this one goes on from.
    pub fn losses(&self) -> &[f64] {
        &self.about.losses
    }

    /// Losses of the examples set aside, with the number of updates before each.
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
        self.trainer.forget_gradients();
        gradients
    }

    /// Takes the next step, or measures; `None` when the run has ended.
    ///
    /// # Errors
    /// If the device fails, or the loss is no number any more.
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
        if !self.aside.is_empty() && (step + 1).is_multiple_of(every) {
            self.evaluate().await?;
        }
        Ok(Some(Event::Step(StepReport { step, loss, rate, tokens, targets })))
    }

    async fn evaluate(&mut self) -> Result<(), TrainError> {
        let aside: Vec<&Example> = self.aside.iter().collect();
        let (loss, step) = (self.trainer.loss_of(&aside).await?, self.trainer.steps());
        let before = self.about.evaluations.iter().map(|(_, loss)| *loss);
        let best = before.fold(f64::INFINITY, f64::min) > loss;
        self.about.evaluations.push((step, loss));
        self.pending.push_back(Event::Evaluated { step, loss, best });
        if self.is_enough() {
            self.end(true).await?;
        }
        Ok(())
    }

    /// Whether the last evaluations were no better than one before them.
    fn is_enough(&self) -> bool {
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

    /// The sequences of the next step.
    fn batch(&self) -> Vec<usize> {
        order::batch(self.train.len(), self.options.batch, self.trainer.steps(), self.options.seed)
    }

    fn dropout_seed(&self) -> u32 {
        let stream = u64::from(self.trainer.steps()) + (1 << 32);
        order::Random::new(self.options.seed, stream).next() as u32
    }
}

/// Both sides as a run takes them, and the sizes of their sequences.
fn sequences(
    (train, aside): (Vec<Example>, Vec<Example>),
    options: &RunOptions,
) -> (Vec<Example>, Vec<Example>, Shape) {
    let (train, aside) = match options.pack {
        Some(longest) => (packed(&train, longest), packed(&aside, longest)),
        None => (train, aside),
    };
    let (tokens, targets) = largest(&train);
    let (more_tokens, more_targets) = largest(&aside);
    let shape = Shape {
        tokens: tokens.max(more_tokens).max(options.tokens.unwrap_or(0)),
        targets: targets.max(more_targets),
    };
    (train, aside, shape)
}

/// The options that decide about the numbers of a run; more steps of a constant rate may be added.
fn decisive(options: &RunOptions) -> String {
    let RunOptions { schedule, settings, batch, pack, seed, .. } = options;
    let steps = match schedule.shape {
        crate::Shaped::Constant => String::new(),
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
