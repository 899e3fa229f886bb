//! Work for the thread of a model.

use std::time::Instant;

use rullama_api::{
    ApiError, EmbeddingRequest, GenerationEvent, GenerationRequest, LoraScale,
    request::llamacpp::TokenizeRequest, response::llamacpp::LoraAdapter,
};
use rullama_server::engine::{Embedded, Rendered};
use tokio::sync::{mpsc::UnboundedSender, oneshot};

/// Where a result goes; nobody may listen any more.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, ApiError>>;

/// A request and when it came.
pub(crate) struct Job {
    pub(crate) arrived: Instant,
    pub(crate) task: Task,
}

/// What is to be done.
pub(crate) enum Task {
    Generate { request: Box<GenerationRequest>, events: UnboundedSender<GenerationEvent> },
    Embed { request: Box<EmbeddingRequest>, reply: Reply<Embedded> },
    Render { request: Box<GenerationRequest>, reply: Reply<Rendered> },
    Tokenize { request: TokenizeRequest, reply: Reply<Vec<(u32, Vec<u8>)>> },
    Detokenize { tokens: Vec<u32>, reply: Reply<String> },
    Adapters { reply: Reply<Vec<LoraAdapter>> },
    SetAdapters { scales: Vec<LoraScale>, reply: Reply<()> },
    Load { reply: Reply<()> },
}

impl Task {
    /// Ends it with an error.
    pub(crate) fn fail(self, error: ApiError) {
        // A client that has disconnected gets no error.
        match self {
            Self::Generate { events, .. } => drop(events.send(GenerationEvent::Failed(error))),
            Self::Embed { reply, .. } => drop(reply.send(Err(error))),
            Self::Render { reply, .. } => drop(reply.send(Err(error))),
            Self::Tokenize { reply, .. } => drop(reply.send(Err(error))),
            Self::Detokenize { reply, .. } => drop(reply.send(Err(error))),
            Self::Adapters { reply } => drop(reply.send(Err(error))),
            Self::SetAdapters { reply, .. } | Self::Load { reply } => drop(reply.send(Err(error))),
        }
    }

    /// Whether nobody waits for it any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        match self {
            Self::Generate { events, .. } => events.is_closed(),
            Self::Embed { reply, .. } => reply.is_closed(),
            Self::Render { reply, .. } => reply.is_closed(),
            Self::Tokenize { reply, .. } => reply.is_closed(),
            Self::Detokenize { reply, .. } => reply.is_closed(),
            Self::Adapters { reply } => reply.is_closed(),
            // Their effect is wanted whether or not somebody waits for it.
            Self::SetAdapters { .. } | Self::Load { .. } => false,
        }
    }
}

/// What a model of this kind cannot do.
pub(crate) fn not_for_this_model(what: &str) -> ApiError {
    ApiError::Invalid { message: format!("this model cannot {what}") }
}
