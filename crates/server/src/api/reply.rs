//! Replies of the APIs: JSON, and errors in the shape of each.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use rullama_api::{ApiError, Dialect};
use serde::Serialize;

use crate::record::Record;

/// Routes of llama.cpp's server that this one does not have.
pub(super) const NOT_SUPPORTED: [&str; 9] = [
    "/completion",
    "/completions",
    "/chat/completions",
    "/embedding",
    "/embeddings",
    "/infill",
    "/rerank",
    "/reranking",
    "/slots",
];

/// Whose API a path belongs to; none for the app and model files.
pub(crate) fn dialect_of(path: &str) -> Option<Dialect> {
    let is = |prefix: &str| {
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if is("/api") {
        Some(Dialect::Ollama)
    } else if is("/v1/messages") {
        Some(Dialect::Anthropic)
    } else if is("/v1/health") {
        Some(Dialect::LlamaCpp)
    } else if is("/v1") {
        Some(Dialect::OpenAi)
    } else {
        let extras = [
            "/health",
            "/metrics",
            "/props",
            "/tokenize",
            "/detokenize",
            "/apply-template",
            "/lora-adapters",
        ];
        let is_extra = extras.contains(&path) || NOT_SUPPORTED.contains(&path);
        is_extra.then_some(Dialect::LlamaCpp)
    }
}

/// An error as the reply to this request, whose path tells the API.
pub(crate) fn refuse(request: &Request, error: &ApiError) -> Response {
    let record = Record::of(request);
    // Nested routers see the rest of the path only; the record has all of it.
    let dialect = dialect_of(&record.path()).unwrap_or(Dialect::LlamaCpp);
    failure(error, dialect, &record.id)
}

/// An error as a reply.
pub(super) fn failure(error: &ApiError, dialect: Dialect, request_id: &str) -> Response {
    let reply = error.reply(dialect, request_id);
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_bytes(status, reply.body.to_string().into_bytes());
    let headers = response.headers_mut();
    if let Some(seconds) = reply.retry_after {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    if matches!(error, ApiError::Internal { .. }) {
        // What fails once with the same request fails again.
        headers.insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}

/// A reply of JSON.
pub(super) fn json(value: &impl Serialize) -> Result<Response, ApiError> {
    let failed = |error: serde_json::Error| ApiError::Internal { message: error.to_string() };
    Ok(json_bytes(StatusCode::OK, serde_json::to_vec(value).map_err(failed)?))
}

fn json_bytes(status: StatusCode, body: Vec<u8>) -> Response {
    let kinds = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, kinds, body).into_response()
}

/// A reply that is streamed.
pub(super) fn streamed(content_type: &'static str, body: Body) -> Response {
    let kinds = [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-cache")];
    (StatusCode::OK, kinds, body).into_response()
}

/// Turns the result of a handler into a reply.
pub(super) fn finish(
    result: Result<Response, ApiError>,
    dialect: Dialect,
    record: &Record,
) -> Response {
    result.unwrap_or_else(|error| failure(&error, dialect, &record.id))
}
