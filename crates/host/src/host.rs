//! The server's engine.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use rullama_api::{
    ApiError, EmbeddingRequest, GenerationRequest, KeepAlive, LoraScale, Options,
    request::llamacpp::TokenizeRequest,
    response::llamacpp::{LoraAdapter, Metrics},
};
use rullama_server::engine::{
    Embedded, Engine, Events, LoadedModel, Pending, Rendered, ServedModel,
};
use tokio::sync::{mpsc::unbounded_channel, oneshot};

use crate::{
    HostOptions,
    job::{Reply, Task},
    registry::Registry,
};

/// Loads models on demand and runs requests on them.
pub struct Host {
    registry: Arc<Registry>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

impl Host {
    /// A host without models; they are loaded when requests name them.
    pub fn new(options: HostOptions) -> Self {
        Self { registry: Arc::new(Registry::new(options)) }
    }

    /// Unloads all models and waits for their threads for at most this long, so that no GPU is in use when the program ends.
    pub fn close(&self, patience: Duration) {
        self.registry.close(patience);
    }

    /// Gives a task to a model's thread; its result comes later.
    fn ask<T: Send + 'static>(
        &self,
        model: &Arc<ServedModel>,
        (options, keep_alive): (Option<&Options>, Option<KeepAlive>),
        task: impl FnOnce(Reply<T>) -> Task,
    ) -> Pending<T> {
        let (reply, result) = oneshot::channel();
        self.registry.submit(model, context(model, options), keep_alive, task(reply));
        let stopped = || ApiError::Internal { message: "the model's thread has ended".to_owned() };
        async move { result.await.unwrap_or_else(|_| Err(stopped())) }.boxed()
    }
}

/// The context that a request chooses, cut to what the model was trained for.
fn context(model: &ServedModel, options: Option<&Options>) -> Option<usize> {
    let wanted = usize::try_from(options?.num_ctx?).ok().filter(|tokens| *tokens > 0)?;
    let trained = model.details.context_length.and_then(|tokens| usize::try_from(tokens).ok());
    Some(wanted.min(trained.unwrap_or(usize::MAX)))
}

impl Engine for Host {
    fn generate(&self, model: Arc<ServedModel>, request: GenerationRequest) -> Pending<Events> {
        let (events, receiver) = unbounded_channel();
        let (context, keep_alive) = (context(&model, Some(&request.options)), request.keep_alive);
        let task = Task::Generate { request: Box::new(request), events };
        self.registry.submit(&model, context, keep_alive, task);
        async { Ok(receiver) }.boxed()
    }

    fn embed(&self, model: Arc<ServedModel>, request: EmbeddingRequest) -> Pending<Embedded> {
        self.ask(&model, (None, request.keep_alive), |reply| Task::Embed {
            request: Box::new(request),
            reply,
        })
    }

    fn render(&self, model: Arc<ServedModel>, request: GenerationRequest) -> Pending<Rendered> {
        let request = Box::new(request);
        self.ask(&model, (None, request.keep_alive), |reply| Task::Render { request, reply })
    }

    fn tokenize(
        &self,
        model: Arc<ServedModel>,
        request: TokenizeRequest,
    ) -> Pending<Vec<(u32, Vec<u8>)>> {
        self.ask(&model, (None, None), |reply| Task::Tokenize { request, reply })
    }

    fn detokenize(&self, model: Arc<ServedModel>, tokens: Vec<u32>) -> Pending<String> {
        self.ask(&model, (None, None), |reply| Task::Detokenize { tokens, reply })
    }

    fn load(
        &self,
        model: Arc<ServedModel>,
        options: Options,
        keep_alive: Option<KeepAlive>,
    ) -> Pending<()> {
        self.ask(&model, (Some(&options), keep_alive), |reply| Task::Load { reply })
    }

    fn unload(&self, model: &str) -> Pending<()> {
        self.registry.unload(model);
        async { Ok(()) }.boxed()
    }

    fn parallel(&self) -> usize {
        self.registry.options.parallel.max(1)
    }

    fn loaded(&self) -> Vec<LoadedModel> {
        self.registry.loaded()
    }

    fn adapters(&self, model: Arc<ServedModel>) -> Pending<Vec<LoraAdapter>> {
        self.ask(&model, (None, None), |reply| Task::Adapters { reply })
    }

    fn set_adapters(&self, model: Arc<ServedModel>, scales: Vec<LoraScale>) -> Pending<()> {
        self.ask(&model, (None, None), |reply| Task::SetAdapters { scales, reply })
    }

    fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        self.registry.count(|counted| metrics = *counted);
        metrics
    }
}
