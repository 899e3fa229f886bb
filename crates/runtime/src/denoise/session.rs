//! A text being generated: what was read, and the canvas after it.

use std::{collections::HashMap, ops::ControlFlow};

use rullama_engine::{
    cpu::Data,
    executor::{Memory, Plan},
    gpu::profile::Table,
    graph::{Step, Type, Value},
    ops::rope_table,
};
use rullama_models::gemma4::{
    Inputs, Kind,
    diffusion::{Canvas, CanvasInputs, DiffusionConfig, DiffusionDefaults, canvas},
};

use super::{
    Block, CanvasTrace, DenoiseOptions, Denoised, Denoiser, StepInputs,
    model::{Shape, reading},
    random::Random,
};
use crate::error::RuntimeError;

/// A text being generated.
#[derive(Debug)]
pub struct Denoising {
    model: Denoiser,
    shape: Shape,
    memory: Memory,
    reading: Option<Plan>,
    /// Graphs of steps, by whether they look at the step before and whether they are traced.
    steps: HashMap<(bool, bool), (Plan, Outputs)>,
    filled: usize,
}

/// Values of a step's graph.
#[derive(Debug, Clone, Copy)]
struct Outputs {
    numbers: Value,
    best: Value,
    canvas: Value,
    entropy: Value,
    logits: Value,
}

/// Numbers of a step, its likeliest tokens, and the canvas after it.
type Watched = ([f32; 3], Vec<u32>, Vec<u32>);

impl Denoising {
    pub(super) fn new(model: Denoiser, shape: Shape, memory: Memory) -> Self {
        Self { model, shape, memory, reading: None, steps: HashMap::new(), filled: 0 }
    }

    /// Tokens that were read.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Tokens that prompt and text may have together.
    pub fn context(&self) -> usize {
        self.shape.context
    }

    /// Forgets what was read.
    pub fn restart(&mut self) {
        self.filled = 0;
    }

    /// Bytes of caches and activations on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        let steps = self.steps.values().map(|(plan, _)| plan);
        let plans = self.reading.iter().chain(steps);
        self.memory.gpu_bytes() + plans.map(Plan::gpu_bytes).sum::<u64>()
    }

    /// Reads tokens: a prompt, or a block that is done.
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
        if self.reading.is_none() {
            let graph = reading(config, &self.model.0.catalog, &self.shape);
            self.reading = Some(Plan::new(graph, &self.model.0.weights, &mut self.memory).await?);
        }
        let Some(plan) = &self.reading else { unreachable!("it was made just now") };
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

    /// Denoises a block after what was read. `each` is told of every step and may end the work, in which case there is no block.
    /// The block is not read yet.
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
        // Blocks of one text draw different numbers.
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
            let told = Denoised { step, entropy, changed, accepted, tokens, kept: unchanged };
            if each(&told).is_break() {
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

    /// A canvas of these tokens, and no step before.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn begin(&mut self, tokens: &[u32]) -> Result<(), RuntimeError> {
        for conditioned in [false, true] {
            self.prepare(conditioned, false).await?;
            let (plan, _) = &self.steps[&(conditioned, false)];
            self.write_places(plan);
        }
        let (plan, _) = &self.steps[&(false, false)];
        plan.write_ids(CanvasInputs::CANVAS, tokens.to_vec());
        Ok(())
    }

    /// One step: its numbers, and where they are watched, the likeliest tokens and the canvas after the step.
    async fn step(
        &mut self,
        conditioned: bool,
        inputs: &StepInputs,
        watch: bool,
    ) -> Result<Watched, RuntimeError> {
        self.prepare(conditioned, false).await?;
        let (plan, outputs) = &self.steps[&(conditioned, false)];
        let mut wanted = vec![outputs.numbers];
        if watch {
            wanted.extend([outputs.best, outputs.canvas]);
        }
        let step = self.write_step(plan, inputs);
        match plan.run_reading(&step, &wanted).await?.wait().await?.as_slice() {
            [Data::F32(n)] => Ok(([n[0], n[1], n[2]], Vec::new(), Vec::new())),
            [Data::F32(n), Data::U32(best), Data::U32(canvas)] => {
                Ok(([n[0], n[1], n[2]], best.clone(), canvas.clone()))
            }
            other => panic!("a step makes numbers and ids, not {other:?}"),
        }
    }

    /// How long each kernel of a step takes that looks at the one before; nothing on the CPU. For measurements: the canvas changes.
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

    /// One step over a given canvas, with all that is known of it; `conditioned` on the last step that was made.
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
        self.write_places(plan);
        plan.write_ids(CanvasInputs::CANVAS, tokens.to_vec());
        let step = self.write_step(plan, inputs);
        let Outputs { numbers, best, entropy, logits, .. } = *outputs;
        let data = plan.run_reading(&step, &[numbers, best, entropy, logits]).await?.wait().await?;
        let canvas = self.ids(CanvasInputs::CANVAS).await?;
        match <[Data; 4]>::try_from(data) {
            Ok([Data::F32(n), Data::U32(best), Data::F32(entropy), Data::F32(logits)]) => {
                Ok(CanvasTrace { logits, entropy, best, canvas, numbers: [n[0], n[1], n[2]] })
            }
            other => panic!("a step makes numbers and ids, not {other:?}"),
        }
    }

    async fn prepare(&mut self, conditioned: bool, traced: bool) -> Result<(), RuntimeError> {
        if !self.steps.contains_key(&(conditioned, traced)) {
            let (config, catalog) = (&self.model.0.config, &self.model.0.catalog);
            let pass = self.shape.canvas(conditioned, traced);
            let made = canvas(config, catalog, &pass);
            let Canvas { graph, numbers, best, canvas, entropy, logits } = made;
            let plan = Plan::new(graph, &self.model.0.weights, &mut self.memory).await?;
            let outputs = Outputs { numbers, best, canvas, entropy, logits };
            self.steps.insert((conditioned, traced), (plan, outputs));
        }
        Ok(())
    }

    /// Where the canvas stands and what its places see.
    fn write_places(&self, plan: &Plan) {
        let config = &self.model.0.config;
        let (first, c, window) = (self.filled, config.canvas, config.decoder.window);
        write_positions(plan, config, first);
        let spans = |from: usize| [from as u32, (first + c) as u32].repeat(c);
        for (name, from) in [
            // As many of the prompt as a place before the canvas would see, whichever place it is.
            (CanvasInputs::SPANS_SLIDING, first.saturating_sub(window - 1)),
            (CanvasInputs::SPANS_GLOBAL, 0),
        ] {
            if plan.has(name) {
                plan.write_ids(name, spans(from));
            }
        }
    }

    fn write_step(&self, plan: &Plan, inputs: &StepInputs) -> Step {
        plan.write_numbers(CanvasInputs::COLD, vec![inputs.temperature.recip()]);
        plan.write_numbers(CanvasInputs::BOUND, vec![inputs.bound]);
        plan.write_numbers(CanvasInputs::UNIFORM, inputs.uniform.clone());
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
        plan.write_numbers(Inputs::ROPE_SLIDING, table);
    }
    if let Some(head) = decoder.head(Kind::Global).filter(|_| plan.has(Inputs::ROPE_GLOBAL)) {
        // The first quarter of the pairs turns, the others stand still.
        let pairs = head / 2;
        let factors: Vec<f32> =
            (0..pairs).map(|i| if i < pairs / 4 { 1.0 } else { 1e30 }).collect();
        let table = rope_table(positions, decoder.rope.global.into(), head, Some(&factors));
        plan.write_numbers(Inputs::ROPE_GLOBAL, table);
    }
}
