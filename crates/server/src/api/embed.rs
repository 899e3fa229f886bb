//! Routes that embed.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use rullama_api::{
    ApiError, Dialect, EmbeddingRequest,
    request::{ollama, openai},
    response::embeddings::{OllamaEmbedding, OllamaEmbeddings, OpenAiEmbeddings},
};

use super::{Api, OLLAMA, body, counters::Counters, prepare, reply};
use crate::{engine::Embedded, record::Record};

type Write = fn(EmbeddingRequest, Embedded) -> Result<Response, ApiError>;

async fn answer(
    api: Arc<Api>,
    request: Request,
    dialect: Dialect,
    parse: fn(&[u8]) -> Result<EmbeddingRequest, ApiError>,
    write: Write,
) -> Response {
    let record = Record::of(&request);
    let result = async {
        let (head, body) = request.into_parts();
        let bytes = body::read(&api.limits, &head.headers, body).await?;
        let request = parse(&bytes)?;
        record.model(&request.model);
        let model = api.model(&request.model).await?;
        let request = prepare::embedding(&model, request, &api.limits)?;
        let mut place = Counters::enter(&api.counters, api.limits.queue)?;
        place.run();
        let embedded = api.engine()?.embed(model, request.clone()).await?;
        write(request, embedded)
    };
    reply::finish(result.await, dialect, &record)
}

/// `POST /api/embed`
pub(super) async fn ollama_embed(State(api): State<Arc<Api>>, request: Request) -> Response {
    answer(api, request, OLLAMA, ollama::embed, |request, embedded| {
        let Embedded { vectors, tokens, load, total } = embedded;
        reply::json(&OllamaEmbeddings::new(request.model, vectors, tokens, load, total))
    })
    .await
}

/// `POST /api/embeddings`
pub(super) async fn ollama_embeddings(State(api): State<Arc<Api>>, request: Request) -> Response {
    answer(api, request, OLLAMA, ollama::embeddings, |_, embedded| {
        let embedding = embedded.vectors.into_iter().next().unwrap_or_default();
        reply::json(&OllamaEmbedding { embedding })
    })
    .await
}

/// `POST /v1/embeddings`
pub(super) async fn openai(State(api): State<Arc<Api>>, request: Request) -> Response {
    answer(api, request, Dialect::OpenAi, openai::embeddings, |request, embedded| {
        let Embedded { vectors, tokens, .. } = embedded;
        let EmbeddingRequest { model, encoding, .. } = request;
        reply::json(&OpenAiEmbeddings::new(model, vectors, encoding, tokens))
    })
    .await
}
