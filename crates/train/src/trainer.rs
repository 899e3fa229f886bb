//! A training step: accumulates gradients of several sequences, then updates. Everything but the loss stays on the device.

use rullama_adapter::{Adapter, Format, container::bytes_of};
use rullama_engine::{
    cpu::Data,
    executor::{Memory, Plan},
    gpu::profile::Table,
    graph::{Step, Type, Value},
    ops::AdamWStep,
};
use rullama_models::{
    Parameter,
    decoder::{Inputs, TrainPass, train_graph},
};
use rullama_runtime::Model;

use crate::{
    adapters::{Slot, fitting, gradient_name},
    dataset::{Example, packed},
    error::TrainError,
    memory::{Need, Shape, evaluation, need, pass},
    update::{LIMIT, SETTINGS, ZERO, moments_of, update_graph},
};

/// Optimizer settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Dropout probability of the LoRA inputs.
    pub dropout: f32,
    /// Maximum global norm of the gradients.
    pub clip: Option<f32>,
    /// Decoupled weight decay.
    pub decay: f32,
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// AdamW's epsilon.
    pub eps: f32,
    /// GPU memory budget in bytes, including the model; layers are recomputed as necessary.
    pub memory: Option<u64>,
    /// Most sequences to compute in one pass; fewer if the budget does not allow it, or if recomputing layers would cost more than it saves.
    pub micro_batch: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dropout: 0.0,
            clip: Some(1.0),
            decay: 0.0,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            memory: None,
            micro_batch: 1,
        }
    }
}

/// The sequences of one step.
pub type Batch<'a> = &'a [&'a Example];

/// Trains an adapter.
#[derive(Debug)]
pub struct Trainer {
    model: Model,
    settings: Settings,
    /// The trained pairs; their values are on the device only.
    slots: Vec<Slot>,
    parameters: Vec<Parameter>,
    pass: TrainPass,
    need: Need,
    memory: Memory,
    learn: PreparedGraph,
    update: Plan,
    /// The evaluation graph, built when first needed.
    measure: Option<PreparedGraph>,
    /// Optimizer steps so far.
    steps: u32,
}

/// A training graph with its plan.
#[derive(Debug)]
struct PreparedGraph {
    plan: Plan,
    loss: Value,
}

impl Trainer {
    /// Prepares an adapter of a model for training on sequences of this shape.
    ///
    /// # Errors
    /// If the adapter does not fit the model, or memory does not suffice.
    pub async fn new(
        model: &Model,
        adapter: &Adapter,
        shape: Shape,
        settings: Settings,
    ) -> Result<Self, TrainError> {
        if model.host_experts() > 0 {
            return Err(TrainError::HostExperts { layers: model.host_experts() });
        }
        if !(0.0..1.0).contains(&settings.dropout) {
            let (option, value) = ("dropout", settings.dropout.to_string());
            return Err(TrainError::Option { option, value, wanted: "choose 0 to less than 1" });
        }
        let ordered = model.file_order(adapter);
        let adapter = ordered.as_ref();
        let pairs = fitting(model, adapter)?;
        let slots: Vec<Slot> = pairs.iter().copied().map(Slot::of).collect();
        let need = need(model, &slots, shape, &settings)?;
        let pass = TrainPass {
            recomputed: need.recomputed,
            dropout: settings.dropout,
            ..pass(model, &slots, shape.times(need.micro_batch), settings.memory)
        };
        let mut memory = Memory::new(model.device());
        let training = train_graph(model.config(), model.catalog(), &pass);
        let parameters = training.parameters;
        let learn = PreparedGraph {
            plan: Plan::new(training.graph, model.weights(), &mut memory).await?,
            loss: training.loss,
        };
        write_positions(model, &learn.plan, pass.tokens);
        let update = update_graph(&parameters, settings.clip.is_some());
        let update = Plan::new(update, model.weights(), &mut memory).await?;
        let mut trainer = Self {
            model: model.clone(),
            settings,
            slots,
            parameters,
            pass,
            need,
            memory,
            learn,
            update,
            measure: None,
            steps: 0,
        };
        for pair in pairs {
            let [a, b] = Slot::of(pair).states();
            trainer.write_state(&a, &pair.a);
            trainer.write_state(&b, &pair.b);
        }
        Ok(trainer)
    }

    /// GPU memory needed, and the number of recomputed layers.
    pub fn need(&self) -> Need {
        self.need
    }

    /// Number of trained parameters.
    pub fn parameters(&self) -> usize {
        self.slots.iter().flat_map(Slot::lengths).sum()
    }

    /// Optimizer steps so far.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// GPU memory in use, in bytes.
    pub fn gpu_bytes(&self) -> u64 {
        let measure = self.measure.as_ref().map_or(0, |prepared| prepared.plan.gpu_bytes());
        let plans = self.learn.plan.gpu_bytes() + self.update.gpu_bytes() + measure;
        self.model.gpu_bytes() + self.memory.gpu_bytes() + plans
    }

    /// Accumulates the gradients of a batch, and returns its mean loss. `seed` is dropout's.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn gradients_of(&mut self, batch: Batch<'_>, seed: u32) -> Result<f64, TrainError> {
        let prepared = &self.learn;
        let targets: usize = batch.iter().map(|example| example.targets()).sum();
        prepared.plan.write_f32(TrainPass::SEED, vec![(targets.max(1) as f64).recip() as f32]);
        run(&self.model, prepared, &self.pass, &mut self.memory, batch, seed).await
    }

    /// Times of each kernel for the last pass and for an update; `None` on the CPU. Changes gradients and adapter, so it is for
    /// measurements only.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn profile(&self) -> Result<Option<[Table; 2]>, TrainError> {
        let step = Step { count: self.pass.tokens as u32, ..Step::default() };
        let learn = self.learn.plan.profile(&step).await?;
        let update = self.update.profile(&Step::default()).await?;
        Ok(learn.zip(update).map(<[Table; 2]>::from))
    }

    /// Updates the adapter with the accumulated gradients, and clears them.
    ///
    /// # Errors
    /// If the device is lost.
    pub fn update(&mut self, rate: f64) -> Result<(), TrainError> {
        let Settings { clip, decay, beta1, beta2, eps, .. } = self.settings;
        let step = AdamWStep {
            rate: rate as f32,
            beta1,
            beta2,
            eps,
            decay,
            gradient_scale: 1.0,
            step: self.steps + 1,
        };
        self.update.write_f32(SETTINGS, step.values().into());
        if let Some(clip) = clip {
            self.update.write_f32(LIMIT, vec![clip]);
            self.update.write_f32(ZERO, vec![0.0]);
        }
        self.update.run(&Step::default())?;
        self.steps += 1;
        Ok(())
    }

    /// The mean loss of a batch, without gradients.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn loss_of(&mut self, batch: Batch<'_>) -> Result<f64, TrainError> {
        let pass = evaluation(&self.pass);
        if self.measure.is_none() {
            let training = train_graph(self.model.config(), self.model.catalog(), &pass);
            let plan = Plan::new(training.graph, self.model.weights(), &mut self.memory).await?;
            write_positions(&self.model, &plan, pass.tokens);
            self.measure = Some(PreparedGraph { plan, loss: training.loss });
        }
        let prepared = self.measure.as_ref().expect("built above");
        run(&self.model, prepared, &pass, &mut self.memory, batch, 0).await
    }

    /// The mean loss of a batch without the adapter.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn base_loss_of(&mut self, batch: Batch<'_>) -> Result<f64, TrainError> {
        let mut kept = Vec::new();
        for slot in self.slots.clone() {
            let ([_, b], [_, length]) = (slot.states(), slot.lengths());
            kept.push((b.clone(), self.read_state(&b, length).await?));
            self.write_state(&b, &vec![0.0; length]);
        }
        let loss = self.loss_of(batch).await;
        kept.iter().for_each(|(b, values)| self.write_state(b, values));
        loss
    }

    /// The accumulated gradients with names such as `layers.0.self_attn.q_proj.lora_A` and shapes.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn gradients(&self) -> Result<Vec<(String, [usize; 2], Vec<f32>)>, TrainError> {
        let mut all = Vec::new();
        for slot in &self.slots {
            let shapes = [[slot.rank, slot.columns], [slot.rows, slot.rank]];
            let names = gradient_name(&slot.tensor).into_iter().zip(slot.gradient_states());
            for ((name, state), shape) in names.zip(shapes) {
                all.push((name, shape, self.read_state(&state, shape[0] * shape[1]).await?));
            }
        }
        Ok(all)
    }

    /// Clears the accumulated gradients.
    pub fn clear_gradients(&mut self) {
        for slot in self.slots.clone() {
            for (state, length) in slot.gradient_states().iter().zip(slot.lengths()) {
                self.write_state(state, &vec![0.0; length]);
            }
        }
    }

    /// The adapter in its current state.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn adapter(&self) -> Result<Adapter, TrainError> {
        let mut pairs = Vec::new();
        for slot in &self.slots {
            let ([a, b], [of_a, of_b]) = (slot.states(), slot.lengths());
            let a = self.read_state(&a, of_a).await?;
            pairs.push(slot.filled(a, self.read_state(&b, of_b).await?));
        }
        let adapter = Adapter {
            name: "trained".into(),
            format: Format::Peft,
            architecture: Some(self.model.config().family.architecture.into()),
            base_model: None,
            pairs,
            ignored: Vec::new(),
        };
        Ok(self.model.checkpoint_order(&adapter).into_owned())
    }

    /// Names and lengths of the states in a checkpoint: parameters and both of their moments.
    pub(crate) fn state_lengths(&self) -> Vec<(String, usize)> {
        let each = |Parameter { name, ty }: &Parameter| {
            let [first, second] = moments_of(name);
            [name.clone(), first, second].map(|name| (name, ty.shape.len()))
        };
        self.parameters.iter().flat_map(each).collect()
    }

    /// Sets the step count of a checkpoint whose states were written.
    pub(crate) fn set_steps(&mut self, steps: u32) {
        self.steps = steps;
    }

    fn write_state(&mut self, name: &str, values: &[f32]) {
        self.write_bytes(name, values.len(), &bytes_of(values));
    }

    /// Writes a state of `length` f32 values.
    pub(crate) fn write_bytes(&mut self, name: &str, length: usize, bytes: &[u8]) {
        self.memory.write(name, &Type::f32([length]), bytes);
    }

    /// The bytes of a state of `length` f32 values.
    pub(crate) async fn read_bytes(
        &self,
        name: &str,
        length: usize,
    ) -> Result<Vec<u8>, TrainError> {
        let bytes = self.memory.read(name, &Type::f32([length])).await?;
        let mut bytes = bytes.expect("plans create the states of all parameters");
        bytes.truncate(length * size_of::<f32>());
        Ok(bytes)
    }

    async fn read_state(&self, name: &str, length: usize) -> Result<Vec<f32>, TrainError> {
        let bytes = self.read_bytes(name, length).await?;
        let value = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Ok(bytes.chunks_exact(4).map(value).collect())
    }
}

/// Writes the RoPE tables, which are the same for all sequences.
fn write_positions(model: &Model, plan: &Plan, tokens: usize) {
    // Fits: a context has fewer than 2^24 tokens.
    for (input, table) in model.rope_tables(0..tokens as u32) {
        if plan.has(input) {
            plan.write_f32(input, table);
        }
    }
}

/// Runs a graph over a batch, as many sequences in a pass as fit, and returns the mean loss.
async fn run(
    model: &Model,
    prepared: &PreparedGraph,
    pass: &TrainPass,
    memory: &mut Memory,
    batch: Batch<'_>,
    seed: u32,
) -> Result<f64, TrainError> {
    let plan = &prepared.plan;
    memory.write(TrainPass::LOSS, &Type::f32([1]), &0f32.to_le_bytes());
    let mut loss = None;
    let most = Shape { tokens: pass.tokens, targets: pass.supervised };
    let sequences = packed(batch.iter().copied(), most);
    for (index, example) in sequences.iter().enumerate() {
        let count = example.ids.len().min(pass.tokens);
        let mut ids = example.ids[..count].to_vec();
        if let Some(mut rows) = model.table_rows(&ids).await? {
            rows.resize(pass.tokens * model.config().table_width(), 0.0);
            plan.write_f32(Inputs::PER_LAYER, rows);
        }
        ids.resize(pass.tokens, 0);
        plan.write_ids(Inputs::IDS, ids);
        // Padding tokens attend only to themselves.
        let mut starts = example.starts[..count].to_vec();
        starts.extend((count..pass.tokens).map(|i| i as u32));
        plan.write_ids(TrainPass::STARTS, starts);
        let (mut rows, mut targets) = example.rows();
        rows.resize(pass.supervised, TrainPass::NONE);
        targets.resize(pass.supervised, TrainPass::NONE);
        for (i, part) in pass.parts().enumerate() {
            plan.write_ids(&TrainPass::rows_input(i), rows[part.clone()].to_vec());
            plan.write_ids(&TrainPass::targets_input(i), targets[part].to_vec());
        }
        let seed = seed.wrapping_add((index as u32).wrapping_mul(0x9e37_79b9));
        // All rows are computed; rows without a target have the target `NONE`.
        let step = Step { position: 0, count: pass.tokens as u32, seed, ..Step::default() };
        if index + 1 == sequences.len() {
            loss = plan.run_reading(&step, &[prepared.loss]).await?.wait().await?.pop();
        } else {
            plan.run(&step)?;
        }
    }
    let targets: usize = batch.iter().map(|example| example.targets()).sum();
    match loss {
        Some(Data::F32(loss)) => Ok(f64::from(loss[0]) / targets.max(1) as f64),
        _ => Ok(0.0),
    }
}
