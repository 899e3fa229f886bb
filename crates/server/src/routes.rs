//! Which path means what.

use std::{io, sync::Arc};

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::{from_fn_with_state, map_response},
    response::{IntoResponse, Response},
    routing::get,
};
use rullama_store::Digest;
use serde::Serialize;
use serde_json::json;
use tokio::task::spawn_blocking;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::{
    app,
    catalog::Catalog,
    content::Content,
    guard::{Guard, check_host, check_site},
    headers,
    refusal::Refusal,
};

/// Everything this server answers.
pub(crate) fn router(catalog: Arc<Catalog>, guard: &Arc<Guard>) -> Router {
    let rullama = Router::new()
        .route("/models", get(models))
        .route("/blobs/{digest}", get(blob))
        .route("/files/{name}/{file}", get(file));
    let ollama = Router::new().route("/version", get(version)).route("/tags", get(tags));
    Router::new()
        .nest("/rullama", for_programs(rullama, guard))
        .nest("/api", for_programs(ollama, guard))
        .fallback(app_file)
        .with_state(catalog)
        .layer(from_fn_with_state(Arc::clone(guard), check_host))
        .layer(map_response(headers::complete))
}

/// Rules for what programs read: other sites only where the user allowed them, and errors as JSON.
fn for_programs(routes: Router<Arc<Catalog>>, guard: &Arc<Guard>) -> Router<Arc<Catalog>> {
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

async fn models(State(catalog): State<Arc<Catalog>>) -> Result<Response, Refusal> {
    let models = blocking(move || catalog.list()).await?;
    json_answer(&json!({ "models": models }))
}

async fn tags(State(catalog): State<Arc<Catalog>>) -> Result<Response, Refusal> {
    let mut models = blocking(move || catalog.list()).await?;
    models.sort_by_key(|model| std::cmp::Reverse(model.time));
    let tags: Vec<_> = models.into_iter().filter_map(|model| model.tag).collect();
    json_answer(&json!({ "models": tags }))
}

async fn version() -> Result<Response, Refusal> {
    json_answer(&json!({ "version": env!("CARGO_PKG_VERSION") }))
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

async fn app_file(request: Request) -> Result<Response, Refusal> {
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
