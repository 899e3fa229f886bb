//! The engine that generates, as this crate sees it.
//!
//! The server parses requests, applies a model's defaults, checks capabilities and writes replies; an [`Engine`] loads models and runs them. The
//! trait keeps GPUs out of this crate and lets its tests use an engine of their own.

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use rullama_api::{
    ApiError, Capability, EmbeddingRequest, GenerationEvent, GenerationRequest, KeepAlive,
    LoraScale, Options, Timestamp,
    listing::Details,
    request::llamacpp::TokenizeRequest,
    response::llamacpp::{LoraAdapter, Metrics},
};
use rullama_chat::Message;
use rullama_store::ModelFiles;
use serde_json::{Map, Value};
use tokio::sync::mpsc::UnboundedReceiver;

/// The events of one generation. Dropping it cancels the generation; their number is bounded by the context.
pub type Events = UnboundedReceiver<GenerationEvent>;

/// A reply that takes its time.
pub type Pending<T> = BoxFuture<'static, Result<T, ApiError>>;

/// Loads models and runs them. All methods return at once; work goes on elsewhere.
pub trait Engine: Send + Sync {
    /// Starts a generation. Errors that are known before the first token belong to the result or come as the first event.
    fn generate(&self, model: Arc<ServedModel>, request: GenerationRequest) -> Pending<Events>;

    /// Embeds texts.
    fn embed(&self, model: Arc<ServedModel>, request: EmbeddingRequest) -> Pending<Embedded>;

    /// Renders a prompt without generating.
    fn render(&self, model: Arc<ServedModel>, request: GenerationRequest) -> Pending<Rendered>;

    /// Tokenizes a text: ids with the bytes of each token.
    fn tokenize(
        &self,
        model: Arc<ServedModel>,
        request: TokenizeRequest,
    ) -> Pending<Vec<(u32, Vec<u8>)>>;

    /// The text of tokens.
    fn detokenize(&self, model: Arc<ServedModel>, tokens: Vec<u32>) -> Pending<String>;

    /// Loads a model ahead of requests for it.
    fn load(
        &self,
        model: Arc<ServedModel>,
        options: Options,
        keep_alive: Option<KeepAlive>,
    ) -> Pending<()>;

    /// Unloads a model as soon as its requests are done; no error if it is not loaded.
    fn unload(&self, model: &str) -> Pending<()>;

    /// Requests of full length that a model runs at once.
    fn parallel(&self) -> usize;

    /// The models in memory.
    fn loaded(&self) -> Vec<LoadedModel>;

    /// The LoRA adapters of a model, with the scales of requests that set none.
    fn adapters(&self, model: Arc<ServedModel>) -> Pending<Vec<LoraAdapter>>;

    /// Sets the scales of requests that set none; adapters that are not listed get 0.
    fn set_adapters(&self, model: Arc<ServedModel>, scales: Vec<LoraScale>) -> Pending<()>;

    /// Counters of the engine; the server itself counts requests.
    fn metrics(&self) -> Metrics;
}

/// A model that can be requested: what the store or a file says about it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServedModel {
    /// Its short name, with tag.
    pub name: String,
    /// Where its bytes are.
    pub place: ModelPlace,
    /// Bytes of all its files together.
    pub size: u64,
    /// SHA-256 of its manifest, or of its file; empty where that would take too long.
    pub digest: String,
    /// When it was last changed.
    pub modified: Timestamp,
    /// What kind of model it is.
    pub details: Details,
    /// What it can do.
    pub capabilities: Vec<Capability>,
    /// Default options, as the store has them.
    pub parameters: Map<String, Value>,
    /// The system text of conversations that have none.
    pub system: Option<String>,
    /// Messages that precede every conversation.
    pub messages: Vec<Message>,
}

/// Where a model's bytes are.
#[derive(Debug, Clone)]
pub enum ModelPlace {
    /// Blobs of a store.
    Store(Box<ModelFiles>),
    /// A GGUF file.
    File(PathBuf),
}

impl ServedModel {
    /// Whether it can do this.
    pub fn can(&self, capability: Capability) -> bool {
        let listed = match capability {
            Capability::Chat => Capability::Completion,
            other => other,
        };
        self.capabilities.contains(&listed)
    }
}

/// Vectors of texts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embedded {
    /// A vector per text, as the request wants them.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens of all texts.
    pub tokens: u64,
    /// Loading the model.
    pub load: Duration,
    /// From the request's arrival on.
    pub total: Duration,
}

/// A prompt that was rendered but not run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The text.
    pub prompt: String,
    /// Its tokens, images and audio included.
    pub tokens: u64,
}

/// A model in memory.
#[derive(Debug, Clone)]
pub struct LoadedModel {
    /// The model.
    pub model: Arc<ServedModel>,
    /// Bytes in memory.
    pub size: u64,
    /// How many of them are in GPU memory.
    pub size_vram: u64,
    /// When it will be unloaded; none = never.
    pub expires: Option<Timestamp>,
    /// Context length it was loaded with.
    pub context_length: u64,
}
