//! Embedding models: one request after another.

use std::time::{Duration, Instant};

use pollster::block_on;
use rullama_api::{ApiError, EmbeddingRequest, PromptText};
use rullama_runtime::{Embedder, RuntimeError};
use rullama_server::engine::Embedded;

use crate::{
    error::of_runtime,
    job::{Job, Task, not_for_this_model},
    registry::Inbox,
};

/// Works on the jobs of an embedding model until it is unloaded.
pub(crate) fn serve(inbox: &mut Inbox, embedder: &Embedder, mut load: Duration) {
    while let Some(job) = inbox.wait() {
        let Job { arrived, task } = job;
        if task.is_abandoned() {
            inbox.status.ended();
            continue;
        }
        match task {
            Task::Embed { request, reply } => {
                let mut embedded = embed(embedder, &request);
                if let Ok(embedded) = &mut embedded {
                    embedded.load = std::mem::take(&mut load);
                    embedded.total = Instant::now().saturating_duration_since(arrived);
                }
                let _ = reply.send(embedded);
            }
            Task::Load { reply } => drop(reply.send(Ok(()))),
            Task::Adapters { reply } => drop(reply.send(Ok(Vec::new()))),
            other => other.fail(not_for_this_model("do this: it computes embeddings")),
        }
        inbox.status.ended();
        inbox.status.grown(embedder.gpu_bytes());
    }
}

fn embed(embedder: &Embedder, request: &EmbeddingRequest) -> Result<Embedded, ApiError> {
    let failed = |error: RuntimeError| of_runtime(&error);
    let mut texts = Vec::with_capacity(request.input.len());
    for text in &request.input {
        texts.push(match text {
            PromptText::Tokens(tokens) => {
                let mut tokens = tokens.clone();
                if request.truncate {
                    tokens.truncate(embedder.config().context);
                }
                tokens
            }
            PromptText::Text(text) => {
                let (tokens, was_cut) = embedder.tokens(text).map_err(failed)?;
                if was_cut && !request.truncate {
                    return Err(ApiError::ContextLength);
                }
                tokens
            }
        });
    }
    if texts.is_empty() {
        return Ok(Embedded::default());
    }
    let tokens = texts.iter().map(|text| text.len() as u64).sum();
    let dimensions = request.dimensions.and_then(|count| usize::try_from(count).ok());
    let vectors = block_on(embedder.embed_tokens(&texts, dimensions)).map_err(failed)?;
    Ok(Embedded { vectors, tokens, ..Embedded::default() })
}
