//! llama.cpp's extra routes.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use percent_encoding::percent_decode_str;
use rullama_api::{
    ApiError, Capability, Dialect, GenerationRequest,
    request::llamacpp,
    response::llamacpp::{
        AppliedTemplate, Detokenized, GenerationSettings, Health, Modalities, Props, TokenPiece,
        Tokenized, Tokens,
    },
};
use serde_json::Map;

use super::{Api, body, prepare, refuse, reply, show};
use crate::record::Record;

const LLAMA_CPP: Dialect = Dialect::LlamaCpp;

/// `GET /health`
pub(super) async fn health(request: Request) -> Response {
    reply::finish(reply::json(&Health::default()), LLAMA_CPP, &Record::of(&request))
}

/// `GET /metrics`
pub(super) async fn metrics(State(api): State<Arc<Api>>) -> Response {
    let mut metrics = api.engine.as_ref().map(|engine| engine.metrics()).unwrap_or_default();
    metrics.requests_processing = api.counters.running() as u64;
    metrics.requests_deferred = api.counters.waiting() as u64;
    let kind = [(header::CONTENT_TYPE, metrics.content_type())];
    (StatusCode::OK, kind, metrics.to_text()).into_response()
}

/// Routes of llama.cpp that it shares with OpenAI's API, or that need what these models lack.
pub(super) async fn not_supported(request: Request) -> Response {
    let record = Record::of(&request);
    let advice = match record.path().as_str() {
        "/completion" | "/completions" => "; use /v1/completions",
        "/chat/completions" => "; use /v1/chat/completions",
        "/embedding" | "/embeddings" => "; use /v1/embeddings",
        "/slots" => "; /metrics counts requests, /props tells how many run at once",
        _ => "",
    };
    let message = format!("this server does not support this endpoint{advice}");
    refuse(&request, &ApiError::NotImplemented { message })
}

/// The model of a query, where there is no body to name it.
fn model_of_query(request: &Request) -> Option<String> {
    let mut pairs = request.uri().query()?.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == "model")?;
    let name = percent_decode_str(value).decode_utf8().ok()?.into_owned();
    Some(name).filter(|name| !name.is_empty())
}

async fn bytes(api: &Api, request: Request) -> Result<Bytes, ApiError> {
    let (head, body) = request.into_parts();
    body::read(&api.limits, &head.headers, body).await
}

/// `GET /props`
pub(super) async fn props(State(api): State<Arc<Api>>, request: Request) -> Response {
    let (record, name) = (Record::of(&request), model_of_query(&request));
    let result = async {
        let model = api.model_or_loaded(name.as_deref()).await?;
        let loaded = api.engine()?.loaded().into_iter().find(|one| one.model.name == model.name);
        let trained = model.details.context_length.unwrap_or(0);
        reply::json(&Props {
            default_generation_settings: GenerationSettings {
                n_ctx: loaded.as_ref().map_or(trained, |loaded| loaded.context_length),
                params: model.parameters.clone(),
            },
            total_slots: u32::try_from(api.engine()?.parallel()).unwrap_or(u32::MAX),
            model_path: model.name.clone(),
            chat_template: show::template(Arc::clone(&model)).await?,
            modalities: Modalities {
                vision: model.can(Capability::Vision),
                audio: model.can(Capability::Audio),
            },
            build_info: concat!("rullama ", env!("CARGO_PKG_VERSION")).to_owned(),
            is_sleeping: loaded.is_none(),
        })
    };
    reply::finish(result.await, LLAMA_CPP, &record)
}

/// `POST /tokenize`
pub(super) async fn tokenize(State(api): State<Arc<Api>>, request: Request) -> Response {
    let record = Record::of(&request);
    let result = async {
        let request = llamacpp::tokenize(&bytes(&api, request).await?)?;
        if request.content.len() as u64 > api.limits.prompt {
            return Err(ApiError::ContextLength);
        }
        let model = api.model_or_loaded(request.model.as_deref()).await?;
        record.model(&model.name);
        let with_pieces = request.with_pieces;
        let tokens = api.engine()?.tokenize(model, request).await?;
        let tokens = if with_pieces {
            let piece = |(id, bytes): (u32, Vec<u8>)| TokenPiece { id, piece: bytes.into() };
            Tokens::Pieces(tokens.into_iter().map(piece).collect())
        } else {
            Tokens::Ids(tokens.into_iter().map(|(id, _)| id).collect())
        };
        reply::json(&Tokenized { tokens })
    };
    reply::finish(result.await, LLAMA_CPP, &record)
}

/// `POST /detokenize`
pub(super) async fn detokenize(State(api): State<Arc<Api>>, request: Request) -> Response {
    let record = Record::of(&request);
    let result = async {
        let request = llamacpp::detokenize(&bytes(&api, request).await?)?;
        let model = api.model_or_loaded(request.model.as_deref()).await?;
        record.model(&model.name);
        let content = api.engine()?.detokenize(model, request.tokens).await?;
        reply::json(&Detokenized { content })
    };
    reply::finish(result.await, LLAMA_CPP, &record)
}

/// `POST /apply-template`
pub(super) async fn apply_template(State(api): State<Arc<Api>>, request: Request) -> Response {
    let record = Record::of(&request);
    let result = async {
        let request = llamacpp::apply_template(&bytes(&api, request).await?)?;
        let model = api.model_or_loaded(request.model.as_deref()).await?;
        record.model(&model.name);
        let mut generation = GenerationRequest::chat(LLAMA_CPP, model.name.clone(), request.chat);
        generation.think = request.think;
        let generation = prepare::generation(&model, generation, &api.limits)?;
        let prompt = api.engine()?.render(model, generation).await?.prompt;
        reply::json(&AppliedTemplate { prompt })
    };
    reply::finish(result.await, LLAMA_CPP, &record)
}

/// `GET /lora-adapters`
pub(super) async fn adapters(State(api): State<Arc<Api>>, request: Request) -> Response {
    let (record, name) = (Record::of(&request), model_of_query(&request));
    let result = async {
        let model = api.model_or_loaded(name.as_deref()).await?;
        reply::json(&api.engine()?.adapters(model).await?)
    };
    reply::finish(result.await, LLAMA_CPP, &record)
}

/// `POST /lora-adapters`
pub(super) async fn set_adapters(State(api): State<Arc<Api>>, request: Request) -> Response {
    let (record, name) = (Record::of(&request), model_of_query(&request));
    let result = async {
        let model = api.model_or_loaded(name.as_deref()).await?;
        let scales = llamacpp::lora_adapters(&bytes(&api, request).await?)?;
        api.engine()?.set_adapters(model, scales).await?;
        reply::json(&Map::new())
    };
    reply::finish(result.await, LLAMA_CPP, &record)
}
