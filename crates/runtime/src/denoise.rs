//! Text that settles: DiffusionGemma writes blocks of tokens all at once, step by step out of noise.
//!
//! A step stays on the device: what comes back is how sure the model is and whether it still changes its mind. The likeliest tokens are
//! read when a block is done, or when somebody watches.

mod random;

use std::{collections::HashMap, ops::ControlFlow};

use rullama_chat::Family;
use rullama_engine::{
    cpu::Data,
    executor::{Device, Memory, Plan, Weights, state_bytes},
    gpu::work_bytes,
    graph::{Element, Graph, Origin, Step, Value},
    ops::rope_table,
};
use rullama_gguf::Gguf;
use rullama_models::{
    Catalog,
    gemma4::{
        Feed, Inputs, Kind, Pass, Want, decoder,
        diffusion::{Canvas, CanvasInputs, CanvasPass, DiffusionConfig, DiffusionDefaults, canvas},
    },
};
use rullama_tokenizer::Tokenizer;

use crate::{
    error::RuntimeError,
    model::{CacheType, Progress},
    session::DEFAULT_CONTEXT,
    tower::load,
    vocabulary,
};
use random::Random;

/// How a canvas settles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DenoiseOptions {
    /// Steps, bounds and temperatures.
    pub settle: DiffusionDefaults,
    /// Start of the random numbers.
    pub seed: u64,
    /// Whether each step's likeliest tokens are told.
    pub watch: bool,
}

/// A step that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Denoised {
    /// Its number, from 1.
    pub step: usize,
    /// Mean entropy of the places, in nats.
    pub entropy: f32,
    /// Places whose likeliest token changed.
    pub changed: usize,
    /// Places that kept what was drawn.
    pub accepted: usize,
    /// The likeliest tokens, for those who watch.
    pub tokens: Vec<u32>,
}

/// A block that has settled.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// All its tokens.
    pub tokens: Vec<u32>,
    /// Steps it took.
    pub steps: usize,
}

/// Logits and entropies of one step, for comparison with other implementations.
#[derive(Debug, Clone, PartialEq)]
pub struct CanvasTrace {
    /// Logits of every place.
    pub logits: Vec<f32>,
    /// Entropies of every place.
    pub entropy: Vec<f32>,
    /// The likeliest tokens.
    pub best: Vec<u32>,
    /// The canvas behind the step.
    pub canvas: Vec<u32>,
    /// Mean entropy, changes, accepted places.
    pub numbers: [f32; 3],
}

/// What one step is told.
#[derive(Debug, Clone, PartialEq)]
pub struct StepInputs {
    /// The temperature.
    pub temperature: f32,
    /// The entropy bound.
    pub bound: f32,
    /// Numbers in [0, 1) that draw, one for each place.
    pub uniform: Vec<f32>,
    /// Tokens for places that are not accepted.
    pub noise: Vec<u32>,
}

/// A model that denoises, on a device.
#[derive(Debug)]
pub struct Denoiser {
    gguf: Gguf,
    device: Device,
    config: DiffusionConfig,
    catalog: Catalog,
    weights: Weights,
    tokenizer: Option<Tokenizer>,
}

impl Denoiser {
    /// Loads a model onto a device; `progress` may cancel.
    ///
    /// # Errors
    /// If the file is no such model, does not fit, or the device fails.
    pub async fn load(
        gguf: Gguf,
        device: Device,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Self, RuntimeError> {
        let config = DiffusionConfig::of_file(&gguf)?;
        let catalog = Catalog::of_file(&gguf, &config.expected())?;
        let shape = Shape { context: config.canvas, ring: config.canvas, cache: Element::F32 };
        let lists = [
            canvas(&config, &catalog, &shape.canvas(true, false)).graph,
            reading(&config, &catalog, &shape),
        ];
        let mut weights = Weights::new(&device);
        let mut known: Vec<Origin> = Vec::new();
        let bytes = |name: &str| gguf.tensor(name).map_or(0, |tensor| tensor.nbytes());
        let total = catalog.iter().map(|(name, _)| bytes(name)).sum();
        let mut done = 0;
        for (_, info) in lists.iter().flat_map(Graph::values) {
            if info.origin.weight_name().is_none() || known.contains(&info.origin) {
                continue;
            }
            load(&gguf, &mut weights, &info.origin, &info.ty, "").await?;
            weights.settle().await?;
            let tensors = info.origin.tensors(&info.ty);
            done += tensors.iter().map(|(name, ..)| bytes(name)).sum::<u64>();
            known.push(info.origin.clone());
            if progress(Progress { done, total }).is_break() {
                return Err(RuntimeError::Cancelled);
            }
        }
        let tokenizer = vocabulary::tokenizer(&gguf).ok();
        Ok(Self { gguf, device, config, catalog, weights, tokenizer })
    }

    /// Bytes of weights, of caches for this context, and to work with, before anything is loaded.
    ///
    /// # Errors
    /// If the file is no such model.
    pub fn memory_of_file(gguf: &Gguf, context: Option<usize>) -> Result<[u64; 3], RuntimeError> {
        let config = DiffusionConfig::of_file(gguf)?;
        let catalog = Catalog::of_file(gguf, &config.expected())?;
        let context = context.unwrap_or(DEFAULT_CONTEXT).min(config.decoder.context);
        let shape = Shape::new(&config, context, CacheType::default());
        let list = canvas(&config, &catalog, &shape.canvas(true, false)).graph;
        let states = list.values().filter_map(|(_, info)| match &info.origin {
            Origin::State(name) => Some((name.as_str(), state_bytes(&info.ty) as u64)),
            _ => None,
        });
        let (caches, work): (Vec<_>, Vec<_>) =
            states.partition(|(name, _)| name.starts_with("k.") || name.starts_with("v."));
        let sum = |states: Vec<(&str, u64)>| states.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let bytes = |(name, _): (&str, _)| gguf.tensor(name).map_or(0, |tensor| tensor.nbytes());
        let weights = catalog.iter().map(bytes).sum();
        Ok([weights, sum(caches), sum(work) + work_bytes(&list)])
    }

    /// What the file's keys say.
    pub fn config(&self) -> &DiffusionConfig {
        &self.config
    }

    /// Text to tokens and back.
    ///
    /// # Errors
    /// If the file's vocabulary is missing or broken.
    pub fn tokenizer(&self) -> Result<&Tokenizer, RuntimeError> {
        self.tokenizer.as_ref().ok_or(RuntimeError::NoVocabulary)
    }

    /// Which prompt template it wants.
    ///
    /// # Errors
    /// If the file has another model's template.
    pub fn family(&self) -> Result<Family, RuntimeError> {
        Ok(vocabulary::family(&self.gguf)?)
    }

    /// Where it runs.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes of weights on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.weights.gpu_bytes()
    }

    /// The file's way of settling, from this seed.
    pub fn options(&self, seed: u64) -> DenoiseOptions {
        DenoiseOptions { settle: self.config.defaults, seed, watch: false }
    }

    /// A new text.
    ///
    /// # Errors
    /// If the context is impossible.
    pub fn session(
        &self,
        context: Option<usize>,
        cache: CacheType,
    ) -> Result<Denoising<'_>, RuntimeError> {
        let trained = self.config.decoder.context;
        let context = context.unwrap_or(DEFAULT_CONTEXT.min(trained));
        if context <= self.config.canvas || context > trained {
            return Err(RuntimeError::BadContext { asked: context, trained });
        }
        Ok(Denoising {
            model: self,
            shape: Shape::new(&self.config, context, cache),
            memory: Memory::new(&self.device),
            reading: None,
            steps: HashMap::new(),
            filled: 0,
        })
    }
}

/// Sizes of caches.
#[derive(Debug, Clone, Copy)]
struct Shape {
    context: usize,
    ring: usize,
    cache: Element,
}

impl Shape {
    fn new(config: &DiffusionConfig, context: usize, cache: CacheType) -> Self {
        let ring = context.min(config.decoder.window + config.canvas);
        Self { context, ring, cache: cache.into() }
    }

    fn canvas(&self, conditioned: bool, traced: bool) -> CanvasPass {
        let Self { context, ring, cache } = *self;
        CanvasPass { conditioned, context, ring, cache, traced }
    }
}

/// The list that reads a canvas' length of a prompt.
fn reading(config: &DiffusionConfig, catalog: &Catalog, shape: &Shape) -> Graph {
    let pass = Pass {
        tokens: config.canvas,
        feed: Feed::Ids,
        table: false,
        want: Want::Caches,
        context: shape.context,
        ring: shape.ring,
        cache: shape.cache,
        suppressed: 0,
        traced: false,
        host_experts: 0,
        blocks: false,
        hidden: false,
    };
    let mut segments = decoder(&config.encoder, catalog, &pass).segments;
    segments.pop().expect("a list has a segment").graph
}

/// A text in the making.
#[derive(Debug)]
pub struct Denoising<'m> {
    model: &'m Denoiser,
    shape: Shape,
    memory: Memory,
    reading: Option<Plan>,
    /// Lists of steps, by whether they look at the step before and whether they are traced.
    steps: HashMap<(bool, bool), (Plan, Outputs)>,
    filled: usize,
}

/// Values of a step's list.
#[derive(Debug, Clone, Copy)]
struct Outputs {
    numbers: Value,
    best: Value,
    entropy: Value,
    logits: Value,
}

impl Denoising<'_> {
    /// Tokens that were read.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Tokens that prompt and text may have together.
    pub fn context(&self) -> usize {
        self.shape.context
    }

    /// Reads tokens: a prompt, or a block that is done.
    ///
    /// # Errors
    /// If they leave no room for a canvas, one does not exist, or the device fails.
    pub async fn read(&mut self, tokens: &[u32]) -> Result<(), RuntimeError> {
        let config = &self.model.config;
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
            let list = reading(config, &self.model.catalog, &self.shape);
            self.reading = Some(Plan::new(list, &self.model.weights, &mut self.memory).await?);
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

    /// Lets a block settle behind what was read. `each` is told of every step and may end the work, in which case there is no block.
    /// The block is not read yet.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn denoise(
        &mut self,
        options: &DenoiseOptions,
        each: &mut dyn FnMut(&Denoised) -> ControlFlow<()>,
    ) -> Result<Option<Block>, RuntimeError> {
        let (c, vocabulary) = (self.model.config.canvas, self.model.config.decoder.vocabulary);
        let DiffusionDefaults { steps, temperature, entropy_bound, confidence, stability } =
            options.settle;
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
            let done = self.step(step > 1, &inputs, options.watch).await?;
            let (entropy, changed, accepted) = (done.0[0], done.0[1] as usize, done.0[2] as usize);
            same = if step > 1 && changed == 0 { same + 1 } else { 0 };
            let told = Denoised { step, entropy, changed, accepted, tokens: done.1 };
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
            self.ready(conditioned, false).await?;
            let (plan, _) = &self.steps[&(conditioned, false)];
            self.write_places(plan);
        }
        let (plan, _) = &self.steps[&(false, false)];
        plan.write_ids(CanvasInputs::CANVAS, tokens.to_vec());
        Ok(())
    }

    /// One step: its numbers, and the likeliest tokens where they are watched.
    async fn step(
        &mut self,
        conditioned: bool,
        inputs: &StepInputs,
        watch: bool,
    ) -> Result<([f32; 3], Vec<u32>), RuntimeError> {
        self.ready(conditioned, false).await?;
        let (plan, outputs) = &self.steps[&(conditioned, false)];
        let wanted =
            if watch { vec![outputs.numbers, outputs.best] } else { vec![outputs.numbers] };
        let step = self.write_step(plan, inputs);
        match plan.run_reading(&step, &wanted).await?.wait().await?.as_slice() {
            [Data::F32(numbers)] => Ok(([numbers[0], numbers[1], numbers[2]], Vec::new())),
            [Data::F32(numbers), Data::U32(best)] => {
                Ok(([numbers[0], numbers[1], numbers[2]], best.clone()))
            }
            other => panic!("a step makes numbers and ids, not {other:?}"),
        }
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
        self.ready(conditioned, true).await?;
        let (plan, outputs) = &self.steps[&(conditioned, true)];
        self.write_places(plan);
        plan.write_ids(CanvasInputs::CANVAS, tokens.to_vec());
        let step = self.write_step(plan, inputs);
        let Outputs { numbers, best, entropy, logits } = *outputs;
        let data = plan.run_reading(&step, &[numbers, best, entropy, logits]).await?.wait().await?;
        let canvas = self.ids(CanvasInputs::CANVAS).await?;
        match <[Data; 4]>::try_from(data) {
            Ok([Data::F32(n), Data::U32(best), Data::F32(entropy), Data::F32(logits)]) => {
                Ok(CanvasTrace { logits, entropy, best, canvas, numbers: [n[0], n[1], n[2]] })
            }
            other => panic!("a step makes numbers and ids, not {other:?}"),
        }
    }

    async fn ready(&mut self, conditioned: bool, traced: bool) -> Result<(), RuntimeError> {
        if !self.steps.contains_key(&(conditioned, traced)) {
            let (config, catalog) = (&self.model.config, &self.model.catalog);
            let pass = self.shape.canvas(conditioned, traced);
            let Canvas { graph, numbers, best, entropy, logits } = canvas(config, catalog, &pass);
            let plan = Plan::new(graph, &self.model.weights, &mut self.memory).await?;
            let outputs = Outputs { numbers, best, entropy, logits };
            self.steps.insert((conditioned, traced), (plan, outputs));
        }
        Ok(())
    }

    /// Where the canvas stands and what its places see.
    fn write_places(&self, plan: &Plan) {
        let config = &self.model.config;
        let (first, c, window) = (self.filled, config.canvas, config.decoder.window);
        write_positions(plan, config, first);
        let spans = |from: usize| [from as u32, (first + c) as u32].repeat(c);
        for (name, from) in [
            // As many of the prompt as a place in front of the canvas would see, whichever place it is.
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
        let count = self.model.config.canvas as u32;
        Step { position: self.filled as u32, count, ..Step::default() }
    }

    async fn ids(&self, state: &str) -> Result<Vec<u32>, RuntimeError> {
        let ty = rullama_engine::graph::Type::u32([self.model.config.canvas]);
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
