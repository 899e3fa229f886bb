//! A block diffusion session: the cached tokens and the canvas after them.

use std::{collections::HashMap, ops::ControlFlow};

use rullama_engine::{
    cpu::Data,
    executor::{Memory, Plan},
    gpu::profile::Table,
    graph::{Step, Type, Value},
    ops::rope_table,
};
use rullama_models::{
    decoder::{Inputs, Kind},
    gemma4::diffusion::{Canvas, CanvasInputs, DiffusionConfig, DiffusionDefaults, canvas},
};

use super::{
    Block, CanvasTrace, DenoiseOptions, Denoised, Denoiser, StepInputs,
    model::{Shape, prefill_graph},
    random::Random,
};
use crate::error::RuntimeError;

/// A block diffusion session.
#[derive(Debug)]
pub struct Denoising {
    model: Denoiser,
    shape: Shape,
    memory: Memory,
    prefill_plan: Option<Plan>,
    /// Denoising graphs, by whether they are conditioned on the previous step and whether they are traced.
    steps: HashMap<(bool, bool), (Plan, Outputs)>,
    filled: usize,
}

/// Outputs of a denoising graph.
#[derive(Debug, Clone, Copy)]
struct Outputs {
    stats: Value,
    best: Value,
    canvas: Value,
    entropy: Value,
    logits: Value,
}

/// Statistics of a step, its most likely tokens, and the canvas after it.
type StepResult = ([f32; 3], Vec<u32>, Vec<u32>);

impl Denoising {
    pub(super) fn new(model: Denoiser, shape: Shape, memory: Memory) -> Self {
        Self { model, shape, memory, prefill_plan: None, steps: HashMap::new(), filled: 0 }
    }

    /// Number of cached tokens.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Maximum tokens of prompt and text together.
    pub fn context(&self) -> usize {
        self.shape.context
    }

    /// Discards the cached tokens.
    pub fn restart(&mut self) {
        self.filled = 0;
    }

    /// Bytes of caches and activations on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        let steps = self.steps.values().map(|(plan, _)| plan);
        let plans = self.prefill_plan.iter().chain(steps);
        self.memory.gpu_bytes() + plans.map(Plan::gpu_bytes).sum::<u64>()
    }

    /// Prefills tokens: a prompt, or a finished block.
    ///
    /// # Errors
    /// If they leave no space for a canvas, one does not exist, or the device fails.
    pub async fn read(&mut self, tokens: &[u32]) -> Result<(), RuntimeError> {
        let config = &self.model.0.config;
        let (c, count) = (config.canvas, config.decoder.vocabulary);
        if let Some(id) = tokens.iter().find(|id| **id as usize >= count) {
            return Err(RuntimeError::NoSuchToken { id: *id, count });
        }
        let all = self.filled + tokens.len();
        if all + c > self.shape.context {
            let (context, trained) = (self.shape.context, config.decoder.context);
            return Err(RuntimeError::ContextFull { tokens: all + c, context, trained });
        }
        if self.prefill_plan.is_none() {
            let graph = prefill_graph(config, &self.model.0.catalog, &self.shape);
            self.prefill_plan =
                Some(Plan::new(graph, &self.model.0.weights, &mut self.memory).await?);
        }
        let Some(plan) = &self.prefill_plan else { unreachable!("the plan was created above") };
        for chunk in tokens.chunks(c) {
            let mut ids = chunk.to_vec();
            ids.resize(c, 0);
            plan.write_ids(Inputs::IDS, ids);
            write_positions(plan, config, self.filled);
            let (position, count) = (self.filled as u32, chunk.len() as u32);
            plan.run(&Step { position, count, ..Step::default() })?;
            self.filled += chunk.len();
        }
        Ok(())
    }

    /// Denoises a block after the cached tokens. `each` is called after every step and may cancel, in which case no block is returned.
    /// The block itself is not cached yet.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn denoise(
        &mut self,
        options: &DenoiseOptions,
        each: &mut dyn FnMut(&Denoised) -> ControlFlow<()>,
    ) -> Result<Option<Block>, RuntimeError> {
        let (c, vocabulary) = (self.model.0.config.canvas, self.model.0.config.decoder.vocabulary);
        let DiffusionDefaults { steps, temperature, entropy_bound, confidence, stability } =
            options.schedule;
        // Each block of a text uses other random numbers.
        let mut random = Random::new(options.seed ^ (self.filled as u64) << 32);
        self.begin(&random.ids(c, vocabulary)).await?;
        let mut same = 0;
        for step in 1..=steps {
            let left = (steps + 1 - step) as f32 / steps as f32;
            let inputs = StepInputs {
                temperature: temperature.0 + (temperature.1 - temperature.0) * left,
                bound: entropy_bound,
                uniform: random.uniforms(c),
                noise: random.ids(c, vocabulary),
            };
            let ([entropy, changed, accepted], tokens, kept) =
                self.step(step > 1, &inputs, options.watch).await?;
            let (changed, accepted) = (changed as usize, accepted as usize);
            same = if step > 1 && changed == 0 { same + 1 } else { 0 };
            let unchanged = tokens.iter().zip(&kept).map(|(best, kept)| best == kept).collect();
            let report = Denoised { step, entropy, changed, accepted, tokens, kept: unchanged };
            if each(&report).is_break() {
                return Ok(None);
            }
            let stable = same >= stability && (step > 1 || stability == 0);
            if step == steps || (stable && entropy < confidence) {
                return Ok(Some(Block {
                    tokens: self.ids(CanvasInputs::BEST).await?,
                    steps: step,
                }));
            }
        }
        Ok(None)
    }

    /// Starts a canvas with these tokens.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn begin(&mut self, tokens: &[u32]) -> Result<(), RuntimeError> {
        for conditioned in [false, true] {
            self.prepare(conditioned, false).await?;
            let (plan, _) = &self.steps[&(conditioned, false)];
            self.write_canvas_inputs(plan);
        }
        let (plan, _) = &self.steps[&(false, false)];
        plan.write_ids(CanvasInputs::CANVAS, tokens.to_vec());
        Ok(())
    }

    /// One step: its statistics, and with `watch` the most likely tokens and the canvas after the step.
    async fn step(
        &mut self,
        conditioned: bool,
        inputs: &StepInputs,
        watch: bool,
    ) -> Result<StepResult, RuntimeError> {
        self.prepare(conditioned, false).await?;
        let (plan, outputs) = &self.steps[&(conditioned, false)];
        let mut wanted = vec![outputs.stats];
        if watch {
            wanted.extend([outputs.best, outputs.canvas]);
        }
        let step = self.write_step(plan, inputs);
        match plan.run_reading(&step, &wanted).await?.wait().await?.as_slice() {
            [Data::F32(n)] => Ok(([n[0], n[1], n[2]], Vec::new(), Vec::new())),
            [Data::F32(n), Data::U32(best), Data::U32(canvas)] => {
                Ok(([n[0], n[1], n[2]], best.clone(), canvas.clone()))
            }
            other => panic!("a step returns f32 values and ids, not {other:?}"),
        }
    }

    /// Profiles the kernels of a conditioned step; `None` on the CPU. Changes the canvas.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn profile(&mut self) -> Result<Option<Table>, RuntimeError> {
        self.prepare(true, false).await?;
        let step = Step {
            position: self.filled as u32,
            count: self.model.0.config.canvas as u32,
            ..Step::default()
        };
        Ok(self.steps[&(true, false)].0.profile(&step).await?)
    }

    /// One traced step over a given canvas, optionally `conditioned` on the last step.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn trace(
        &mut self,
        tokens: &[u32],
        conditioned: bool,
        inputs: &StepInputs,
    ) -> Result<CanvasTrace, RuntimeError> {
        self.prepare(conditioned, true).await?;
        let (plan, outputs) = &self.steps[&(conditioned, true)];
        self.write_canvas_inputs(plan);
        plan.write_ids(CanvasInputs::CANVAS, tokens.to_vec());
        let step = self.write_step(plan, inputs);
        let Outputs { stats, best, entropy, logits, .. } = *outputs;
        let data = plan.run_reading(&step, &[stats, best, entropy, logits]).await?.wait().await?;
        let canvas = self.ids(CanvasInputs::CANVAS).await?;
        match <[Data; 4]>::try_from(data) {
            Ok([Data::F32(n), Data::U32(best), Data::F32(entropy), Data::F32(logits)]) => {
                Ok(CanvasTrace { logits, entropy, best, canvas, stats: [n[0], n[1], n[2]] })
            }
            other => panic!("a step returns f32 values and ids, not {other:?}"),
        }
    }

    async fn prepare(&mut self, conditioned: bool, traced: bool) -> Result<(), RuntimeError> {
        if !self.steps.contains_key(&(conditioned, traced)) {
            let (config, catalog) = (&self.model.0.config, &self.model.0.catalog);
            let pass = self.shape.canvas(conditioned, traced);
            let step = canvas(config, catalog, &pass);
            let Canvas { graph, stats, best, canvas, entropy, logits } = step;
            let plan = Plan::new(graph, &self.model.0.weights, &mut self.memory).await?;
            let outputs = Outputs { stats, best, canvas, entropy, logits };
            self.steps.insert((conditioned, traced), (plan, outputs));
        }
        Ok(())
    }

    /// Writes RoPE tables and attention ranges of the canvas.
    fn write_canvas_inputs(&self, plan: &Plan) {
        let config = &self.model.0.config;
        let (first, c, window) = (self.filled, config.canvas, config.decoder.window);
        write_positions(plan, config, first);
        let spans = |from: usize| [from as u32, (first + c) as u32].repeat(c);
        for (name, from) in [
            // All canvas positions see the window before the canvas' start.
            (CanvasInputs::SPANS_SLIDING, first.saturating_sub(window - 1)),
            (CanvasInputs::SPANS_GLOBAL, 0),
        ] {
            if plan.has(name) {
                plan.write_ids(name, spans(from));
            }
        }
    }

    fn write_step(&self, plan: &Plan, inputs: &StepInputs) -> Step {
        plan.write_f32(CanvasInputs::INVERSE_TEMPERATURE, vec![inputs.temperature.recip()]);
        plan.write_f32(CanvasInputs::BOUND, vec![inputs.bound]);
        plan.write_f32(CanvasInputs::UNIFORM, inputs.uniform.clone());
        plan.write_ids(CanvasInputs::NOISE, inputs.noise.clone());
        let count = self.model.0.config.canvas as u32;
        Step { position: self.filled as u32, count, ..Step::default() }
    }

    async fn ids(&self, state: &str) -> Result<Vec<u32>, RuntimeError> {
        let ty = Type::u32([self.model.0.config.canvas]);
        let bytes = self.memory.read(state, &ty).await?.unwrap_or_default();
        let id = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        Ok(bytes.chunks_exact(4).map(id).collect())
    }
}

fn write_positions(plan: &Plan, config: &DiffusionConfig, first: usize) {
    let positions = first as u32..(first + config.canvas) as u32;
    let decoder = &config.decoder;
    if let Some(head) = decoder.head(Kind::Sliding).filter(|_| plan.has(Inputs::ROPE_SLIDING)) {
        let table = rope_table(positions.clone(), decoder.rope.sliding.into(), head, None);
        plan.write_f32(Inputs::ROPE_SLIDING, table);
    }
    if let Some(head) = decoder.head(Kind::Global).filter(|_| plan.has(Inputs::ROPE_GLOBAL)) {
        // Only the first quarter of the pairs is rotated.
        let pairs = head / 2;
        let factors: Vec<f32> =
            (0..pairs).map(|i| if i < pairs / 4 { 1.0 } else { 1e30 }).collect();
        let table = rope_table(positions, decoder.rope.global.into(), head, Some(&factors));
        plan.write_f32(Inputs::ROPE_GLOBAL, table);
    }
}
