//! A model: immutable weights, shared by its sessions.

mod capability;
mod experts;
mod kind;
mod load;
mod memory;
mod parts;
mod passes;
mod plan;
mod rows;
mod search;
mod summary;
mod warm;

use std::{cell::OnceCell, rc::Rc};

use rullama_chat::ChatTemplate;
use rullama_engine::{
    executor::{Device, Weights},
    gpu::Tuning,
    graph::Element,
};
use rullama_gguf::Gguf;
use rullama_models::{Catalog, decoder::Config};
use rullama_tokenizer::Tokenizer;

pub use capability::capabilities_of;
pub use kind::ModelKind;
pub use load::{LoadOptions, TablePlace};
pub use memory::MemoryUse;
pub use plan::describe_plans;
pub use rullama_chat::Capability;
pub use summary::{Summary, hinted_options};

pub use crate::loader::Progress;

pub(crate) use experts::Routed;

use crate::{
    adapters::Adapters,
    error::RuntimeError,
    session::{Session, SessionOptions},
    vocabulary::{FamilyError, GivenTemplate},
};

/// A loaded model; cloning it is cheap and shares the weights.
#[derive(Debug, Clone)]
pub struct Model(pub(crate) Rc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) gguf: Rc<Gguf>,
    pub(crate) config: Config,
    pub(crate) catalog: Catalog,
    pub(crate) device: Device,
    pub(crate) weights: Weights,
    /// Experts that the host computes.
    pub(crate) host: Weights,
    /// Number of last layers whose experts are on the host.
    pub(crate) host_experts: usize,
    /// `None` if the file's vocabulary is broken: sessions then run on token ids only.
    pub(crate) tokenizer: Option<Rc<Tokenizer>>,
    /// The chat template, if it is not the one that this build reads from the file.
    pub(crate) template: OnceCell<GivenTemplate>,
    /// RoPE frequency divisors of global layers.
    pub(crate) rope_factors: Vec<f32>,
    /// Whether the per-layer input table is on the device.
    pub(crate) table_resident: bool,
    /// Hash that identifies the model's weights.
    pub(crate) fingerprint: [u8; 32],
}

impl Model {
    /// Loads a model onto a device.
    ///
    /// # Errors
    /// If the file is no supported model, it does not fit, the device fails, or `progress` cancels.
    pub async fn load(
        gguf: Gguf,
        device: Device,
        options: &LoadOptions,
        progress: &mut dyn FnMut(Progress) -> std::ops::ControlFlow<()>,
    ) -> Result<Self, RuntimeError> {
        load::load(gguf, device, options, progress).await.map(|inner| Self(Rc::new(inner)))
    }

    /// A new conversation.
    ///
    /// # Errors
    /// If the context is impossible.
    pub fn session(&self, options: &SessionOptions) -> Result<Session, RuntimeError> {
        Session::new(self, options)
    }

    /// Restores a session saved by [`Session::save`].
    ///
    /// # Errors
    /// If it belongs to another model or is damaged, or the device fails.
    pub async fn restore(&self, saved: &[u8]) -> Result<Session, RuntimeError> {
        Session::restore(self, None, saved).await
    }

    /// Restores a session that uses adapters.
    ///
    /// # Errors
    /// If it belongs to another model or other adapters, or is damaged, or the device fails.
    pub async fn restore_with(
        &self,
        adapters: Option<&Adapters>,
        saved: &[u8],
    ) -> Result<Session, RuntimeError> {
        Session::restore(self, adapters, saved).await
    }

    /// The model's configuration.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The file's header.
    pub fn gguf(&self) -> &Gguf {
        &self.0.gguf
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// If the file's vocabulary is missing or broken; sessions still run on token ids.
    pub fn tokenizer(&self) -> Result<&Tokenizer, RuntimeError> {
        self.kept_tokenizer().map(|tokenizer| &**tokenizer)
    }

    /// A shared handle of the tokenizer.
    pub(crate) fn shared_tokenizer(&self) -> Result<Rc<Tokenizer>, RuntimeError> {
        self.kept_tokenizer().map(Rc::clone)
    }

    fn kept_tokenizer(&self) -> Result<&Rc<Tokenizer>, RuntimeError> {
        match &self.0.tokenizer {
            Some(tokenizer) => Ok(tokenizer),
            // Parse again to get the error, which was not kept.
            None => match crate::vocabulary::tokenizer(&self.0.gguf) {
                Err(error) => Err(error.into()),
                Ok(_) => unreachable!("it was refused when the model was loaded"),
            },
        }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The model with other constants of kernel selection, with the same weights; unchanged on the CPU.
    ///
    /// # Errors
    /// Returns the model unchanged if sessions or clones of it exist.
    pub fn with_tuning(self, tuning: Tuning) -> Result<Self, Self> {
        let inner = Rc::try_unwrap(self.0).map_err(Self)?;
        let device = match &inner.device {
            Device::Cpu => Device::Cpu,
            Device::Gpu(gpu) => Device::Gpu(gpu.tuned(tuning)),
        };
        Ok(Self(Rc::new(Inner { device, ..inner })))
    }

    /// The chat template.
    ///
    /// # Errors
    /// If the file's template is of no known family and cannot be executed.
    pub fn template(&self) -> Result<ChatTemplate, RuntimeError> {
        Ok(match self.0.template.get() {
            Some(given) => given.clone().map_err(FamilyError::from)?,
            None => crate::vocabulary::template(&self.0.gguf)?,
        })
    }

    /// Renders conversations with a template that something else runs; the first one given counts.
    pub fn give_template(&self, template: GivenTemplate) {
        self.0.template.get_or_init(|| template);
    }

    /// Bytes of weights on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.0.weights.gpu_bytes()
    }

    /// Number of last layers whose experts are on the host.
    pub fn host_experts(&self) -> usize {
        self.0.host_experts
    }

    /// Bytes of the experts on the host: of a mapped file, or of memory.
    pub fn host_expert_bytes(&self) -> u64 {
        self.0.host.host_bytes()
    }

    /// Whether the per-layer input table is on the GPU.
    pub fn table_on_gpu(&self) -> bool {
        self.0.table_resident && self.0.weights.gpu_bytes() > 0
    }
}

/// KV cache format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheType {
    /// 32-bit floats: exact, twice the size of F16.
    F32,
    /// 16-bit floats.
    #[default]
    F16,
    /// 8-bit blocks with a scale: about half the size of F16.
    Q8,
}

impl From<CacheType> for Element {
    fn from(cache: CacheType) -> Self {
        match cache {
            CacheType::F32 => Self::F32,
            CacheType::F16 => Self::F16,
            CacheType::Q8 => Self::Q8,
        }
    }
}
