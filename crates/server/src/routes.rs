//! Which path means what.

use std::{io, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::{from_fn_with_state, map_response},
    response::{IntoResponse, Response},
    routing::get,
};
use rullama_api::ApiError;
use rullama_store::Digest;
use serde::Serialize;
use serde_json::json;
use tokio::task::spawn_blocking;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::{
    ApiKeys, Log,
    api::{self, Api},
    app,
    catalog::Catalog,
    content::Content,
    guard::{Guard, check_api_site, check_host, check_site},
    headers,
    keys::check_key,
    record::observe,
    refusal::Refusal,
};

/// How long browsers remember what they may send.
const PREFLIGHT: Duration = Duration::from_secs(43_200);

/// Everything this server answers.
pub(crate) fn router(
    api: Arc<Api>,
    guard: &Arc<Guard>,
    keys: Arc<ApiKeys>,
    log: Option<Log>,
) -> Router {
    let files = Router::new()
        .route("/models", get(models))
        .route("/blobs/{digest}", get(blob))
        .route("/files/{name}/{file}", get(file));
    let apis = api::routes()
        .layer(api_sharing(guard))
        .layer(from_fn_with_state(Arc::clone(guard), check_api_site));
    Router::new()
        .nest("/rullama", for_pages(files, guard).with_state(Arc::clone(&api.catalog)))
        .merge(apis.with_state(api))
        .fallback(app_file)
        .layer(from_fn_with_state(keys, check_key))
        .layer(from_fn_with_state(Arc::clone(guard), check_host))
        .layer(map_response(headers::complete))
        .layer(from_fn_with_state(log, observe))
}

/// Rules for model files: other sites only where the user allowed them, and errors as JSON.
fn for_pages(routes: Router<Arc<Catalog>>, guard: &Arc<Guard>) -> Router<Arc<Catalog>> {
    let nothing = || async { Refusal::not_found("nothing at this path") };
    let routes = routes.fallback(nothing).method_not_allowed_fallback(async || Refusal::method());
    let routes = if guard.origins.is_empty() { routes } else { routes.layer(sharing(guard)) };
    routes.layer(from_fn_with_state(Arc::clone(guard), check_site))
}

/// CORS for the allowed sites, preflights of pages on the public network included.
fn sharing(guard: &Guard) -> CorsLayer {
    let origins = guard.origins.iter().map(|origin| origin.value.clone());
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::HEAD])
        .allow_headers([header::RANGE, header::IF_RANGE, header::IF_NONE_MATCH])
        .expose_headers([
            header::CONTENT_LENGTH,
            header::CONTENT_RANGE,
            header::ACCEPT_RANGES,
            header::ETAG,
        ])
        .allow_private_network(true)
}

/// CORS of the APIs: what the clients of all four send.
fn api_sharing(guard: &Arc<Guard>) -> CorsLayer {
    let guard = Arc::clone(guard);
    let stainless = [
        "arch",
        "async",
        "custom-poll-interval",
        "helper-method",
        "lang",
        "os",
        "package-version",
        "poll-helper",
        "retry-count",
        "runtime",
        "runtime-version",
        "timeout",
    ];
    let others = [
        "authorization",
        "content-type",
        "user-agent",
        "accept",
        "x-requested-with",
        "openai-beta",
        "x-api-key",
        "anthropic-version",
        "anthropic-beta",
        "anthropic-dangerous-direct-browser-access",
    ];
    let names = others.into_iter().map(str::to_owned);
    let names = names.chain(stainless.map(|name| format!("x-stainless-{name}")));
    let names = names.filter_map(|name| HeaderName::try_from(name).ok());
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin: &HeaderValue, _| {
            guard.allows_api_origin(origin)
        }))
        .allow_methods([
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::HEAD,
        ])
        .allow_headers(names.collect::<Vec<_>>())
        .allow_private_network(true)
        .max_age(PREFLIGHT)
}

async fn models(State(catalog): State<Arc<Catalog>>) -> Result<Response, Refusal> {
    let models = blocking(move || catalog.list()).await?;
    json_answer(&json!({ "models": models }))
}

async fn blob(
    State(catalog): State<Arc<Catalog>>,
    digest: Result<Path<String>, PathRejection>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let missing = || Refusal::not_found("no served model has a blob with this digest");
    let Path(text) = digest.map_err(|_| missing())?;
    let digest =
        text.strip_prefix("sha256-").and_then(|_| Digest::parse(&text)).ok_or_else(missing)?;
    let content = blocking(move || catalog.blob(&digest)).await?;
    opened(content)?.ok_or_else(missing)?.answer(&method, &headers)
}

async fn file(
    State(catalog): State<Arc<Catalog>>,
    path: Result<Path<(String, String)>, PathRejection>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let missing = || Refusal::not_found("no served file has this name");
    let Path((name, file)) = path.map_err(|_| missing())?;
    let content = blocking(move || catalog.file(&name, &file)).await?;
    opened(content)?.ok_or_else(missing)?.answer(&method, &headers)
}

/// Programs that look for Ollama get the text they know; browsers get the app.
fn is_for_ollama(request: &Request) -> bool {
    let has = |name: &str, part: &str| {
        let values = request.headers().get_all(name).iter();
        values.filter_map(|value| value.to_str().ok()).any(|value| value.contains(part))
    };
    request.uri().path() == "/"
        && request.headers().contains_key(header::USER_AGENT)
        && !has("accept", "text/html")
        && !has("sec-fetch-site", "")
}

async fn app_file(request: Request) -> Result<Response, Refusal> {
    if api::dialect_of(request.uri().path()).is_some() {
        return Ok(api::refuse(&request, &ApiError::RouteNotFound));
    }
    if is_for_ollama(&request) && matches!(*request.method(), Method::GET | Method::HEAD) {
        let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        return Ok((kind, "Ollama is running").into_response());
    }
    match *request.method() {
        Method::GET => app::answer(request.uri().path(), request.headers()),
        Method::HEAD => {
            let (head, _) = app::answer(request.uri().path(), request.headers())?.into_parts();
            Ok(head.into_response())
        }
        _ => Err(Refusal::method()),
    }
}

/// A file that vanished between list and request is not there; one that cannot be read is our failure.
fn opened(content: io::Result<Option<Content>>) -> Result<Option<Content>, Refusal> {
    match content {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Refusal::internal(error.to_string())),
        Ok(content) => Ok(content),
    }
}

/// Runs what waits for the disk on a thread that may wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    spawn_blocking(work).await.map_err(|error| Refusal::internal(error.to_string()))
}

fn json_answer(value: &impl Serialize) -> Result<Response, Refusal> {
    let body = serde_json::to_vec(value).map_err(|error| Refusal::internal(error.to_string()))?;
    let kinds = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")];
    Ok((StatusCode::OK, kinds, body).into_response())
}
