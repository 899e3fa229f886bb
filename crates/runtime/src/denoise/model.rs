//! A block diffusion model: immutable weights, shared by its sessions.

use std::{cell::OnceCell, ops::ControlFlow, rc::Rc};

use rullama_chat::ChatTemplate;
use rullama_engine::{
    executor::{Device, Memory, Weights, state_bytes},
    gpu::work_bytes,
    graph::{Element, Graph, Origin},
};
use rullama_gguf::{Gguf, TensorInfo};
use rullama_models::{
    Catalog,
    decoder::{Pass, PassInput, PassOutput, decoder},
    gemma4::diffusion::{CanvasPass, DiffusionConfig, canvas},
};
use rullama_tokenizer::Tokenizer;

use super::{DenoiseOptions, Denoising};
use crate::{
    background::Background,
    error::RuntimeError,
    loader::all_weights,
    model::{CacheType, Progress},
    session::DEFAULT_CONTEXT,
    vocabulary::{self, FamilyError, FileVocabulary, GivenTemplate},
};

/// A block diffusion model on a device; cloning is cheap and shares the weights.
#[derive(Debug, Clone)]
pub struct Denoiser(pub(super) Rc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    gguf: Gguf,
    device: Device,
    pub(super) config: DiffusionConfig,
    pub(super) catalog: Catalog,
    pub(super) weights: Weights,
    tokenizer: Option<Rc<Tokenizer>>,
    /// The chat template, if it is not the one that this build reads from the file.
    template: OnceCell<GivenTemplate>,
}

/// The configuration and the tensors of a file; unknown tensors that change the output are refused.
fn read(gguf: &Gguf) -> Result<(DiffusionConfig, Catalog), RuntimeError> {
    let config = DiffusionConfig::of_file(gguf)?;
    let catalog = Catalog::of_file(gguf, &config.expected())?;
    config.decoder.refuse_unknown(gguf.tensors().iter().map(TensorInfo::name))?;
    Ok((config, catalog))
}

impl Denoiser {
    /// Loads a model onto a device; `progress` may cancel.
    ///
    /// # Errors
    /// If the file is no block diffusion model, does not fit, or the device fails.
    pub async fn load(
        gguf: Gguf,
        device: Device,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Self, RuntimeError> {
        let (config, catalog) = read(&gguf)?;
        let shape = Shape { context: config.canvas, ring: config.canvas, cache: Element::F32 };
        let graphs = [
            canvas(&config, &catalog, &shape.canvas(true, false)).graph,
            prefill_graph(&config, &catalog, &shape),
        ];
        let tokenizer = FileVocabulary::new(&gguf).ok().map(FileVocabulary::start);
        let weights = all_weights(&gguf, &device, &graphs, progress).await?;
        let tokenizer = tokenizer.and_then(Background::finish).map(Rc::new);
        let template = OnceCell::new();
        Ok(Self(Rc::new(Inner { gguf, device, config, catalog, weights, tokenizer, template })))
    }

    /// Estimated bytes of weights, KV caches and work buffers, from the file's header.
    ///
    /// # Errors
    /// If the file is no block diffusion model.
    pub fn memory_of_file(
        gguf: &Gguf,
        context: Option<usize>,
        cache: CacheType,
    ) -> Result<[u64; 3], RuntimeError> {
        let (config, catalog) = read(gguf)?;
        config.decoder.check_cache(cache.into())?;
        let context = context.unwrap_or(DEFAULT_CONTEXT).min(config.decoder.context);
        let shape = Shape::new(&config, context, cache);
        let graph = canvas(&config, &catalog, &shape.canvas(true, false)).graph;
        let states = graph.values().filter_map(|(_, info)| match &info.origin {
            Origin::State(name) => Some((name.as_str(), state_bytes(&info.ty) as u64)),
            _ => None,
        });
        let (caches, work): (Vec<_>, Vec<_>) =
            states.partition(|(name, _)| name.starts_with("k.") || name.starts_with("v."));
        let sum = |states: Vec<(&str, u64)>| states.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let bytes = |(name, _): (&str, _)| gguf.tensor(name).map_or(0, |tensor| tensor.nbytes());
        let weights = catalog.iter().map(bytes).sum();
        Ok([weights, sum(caches), sum(work) + work_bytes(&graph)])
    }

    /// The model's configuration.
    pub fn config(&self) -> &DiffusionConfig {
        &self.0.config
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// If the file's vocabulary is missing or broken.
    pub fn tokenizer(&self) -> Result<&Tokenizer, RuntimeError> {
        self.0.tokenizer.as_deref().ok_or(RuntimeError::NoVocabulary)
    }

    /// A shared handle of the tokenizer.
    pub(super) fn shared_tokenizer(&self) -> Result<Rc<Tokenizer>, RuntimeError> {
        self.0.tokenizer.clone().ok_or(RuntimeError::NoVocabulary)
    }

    /// The chat template.
    ///
    /// # Errors
    /// If the file's template is of no known family and cannot be executed.
    pub fn template(&self) -> Result<ChatTemplate, RuntimeError> {
        Ok(match self.0.template.get() {
            Some(given) => given.clone().map_err(FamilyError::from)?,
            None => vocabulary::template(&self.0.gguf)?,
        })
    }

    /// Renders conversations with a template that something else runs; the first one given counts.
    pub fn give_template(&self, template: GivenTemplate) {
        self.0.template.get_or_init(|| template);
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Bytes of weights on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.0.weights.gpu_bytes()
    }

    /// The file's default sampling options, with this seed.
    pub fn options(&self, seed: u64) -> DenoiseOptions {
        DenoiseOptions { schedule: self.0.config.defaults, seed, watch: false }
    }

    /// A new session.
    ///
    /// # Errors
    /// If the context is impossible.
    pub fn session(
        &self,
        context: Option<usize>,
        cache: CacheType,
    ) -> Result<Denoising, RuntimeError> {
        let trained = self.0.config.decoder.context;
        let context = context.unwrap_or(DEFAULT_CONTEXT.min(trained));
        if context <= self.0.config.canvas || context > trained {
            return Err(RuntimeError::BadContext { requested: context, trained });
        }
        self.0.config.decoder.check_cache(cache.into())?;
        let shape = Shape::new(&self.0.config, context, cache);
        Ok(Denoising::new(self.clone(), shape, Memory::new(&self.0.device)))
    }
}

/// Sizes of KV caches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) context: usize,
    ring: usize,
    cache: Element,
}

impl Shape {
    fn new(config: &DiffusionConfig, context: usize, cache: CacheType) -> Self {
        let ring = context.min(config.decoder.window + config.canvas);
        Self { context, ring, cache: cache.into() }
    }

    pub(super) fn canvas(&self, conditioned: bool, traced: bool) -> CanvasPass {
        let Self { context, ring, cache } = *self;
        CanvasPass { conditioned, context, ring, cache, traced }
    }
}

/// The prefill graph, for chunks of a canvas' length.
pub(super) fn prefill_graph(config: &DiffusionConfig, catalog: &Catalog, shape: &Shape) -> Graph {
    let pass = Pass {
        tokens: config.canvas,
        input: PassInput::Ids,
        table: false,
        output: PassOutput::Caches,
        context: shape.context,
        ring: shape.ring,
        cache: shape.cache,
        suppressed: 0,
        traced: false,
        host_experts: 0,
        blocks: false,
        hidden: false,
        short_context: None,
        pool: None,
    };
    let mut segments = decoder(&config.encoder, catalog, &pass).segments;
    segments.pop().expect("a graph has a segment").graph
}
