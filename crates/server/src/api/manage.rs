//! Routes that change the store: pull, delete, copy, create.

use std::{
    convert::Infallible,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use futures_util::stream;
use rullama_api::{ApiError, request::ollama, response::NDJSON};
use rullama_pull::{CreateRequest, Progress, PullError};
use rullama_store::{Digest, ModelName, StoreError};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    task::spawn_blocking,
};

use super::{Api, OLLAMA, blocking, body, reply};
use crate::record::Record;

/// How often a layer's progress is reported.
const INTERVAL: Duration = Duration::from_millis(60);

impl Api {
    /// The store that is written to.
    pub(super) fn store(&self) -> Result<PathBuf, ApiError> {
        let message = "this server has no model store to write to";
        let missing = || ApiError::NotImplemented { message: message.to_owned() };
        self.catalog.store().map(Path::to_owned).ok_or_else(missing)
    }

    /// Forgets what is loaded under a name that now means something else.
    async fn changed(&self, name: &ModelName) {
        if let Some(engine) = &self.engine {
            // It goes on as it was loaded otherwise.
            let _ = engine.unload(&name.to_string()).await;
        }
    }
}

async fn bytes(api: &Api, request: Request) -> Result<Bytes, ApiError> {
    let (head, body) = request.into_parts();
    body::read(&api.limits, &head.headers, body).await
}

fn name_of(text: &str) -> Result<ModelName, ApiError> {
    text.parse().map_err(|_| ApiError::InvalidModelName)
}

/// `POST /api/push`
pub(super) async fn push(request: Request) -> Response {
    let message = "pushing models is not supported".to_owned();
    super::refuse(&request, &ApiError::NotImplemented { message })
}

/// `DELETE /api/delete`
pub(super) async fn delete(State(api): State<Arc<Api>>, request: Request) -> Response {
    let record = Record::of(&request);
    let result = async {
        let request = ollama::delete(&bytes(&api, request).await?)?;
        record.model(&request.model);
        let (root, name) = (api.store()?, name_of(&request.model)?);
        api.changed(&name).await;
        let deleted = blocking(move || rullama_pull::delete(&root, &name)).await?;
        deleted.map_err(|error| failed(&error, &request.model))?;
        Ok(StatusCode::OK.into_response())
    };
    reply::finish(result.await, OLLAMA, &record)
}

/// `POST /api/copy`
pub(super) async fn copy(State(api): State<Arc<Api>>, request: Request) -> Response {
    let record = Record::of(&request);
    let result = async {
        let request = ollama::copy(&bytes(&api, request).await?)?;
        record.model(&request.source);
        let (root, source) = (api.store()?, name_of(&request.source)?);
        let destination = name_of(&request.destination)?;
        api.changed(&destination).await;
        let copied = blocking(move || rullama_pull::copy(&root, &source, &destination)).await?;
        copied.map_err(|error| failed(&error, &request.source))?;
        Ok(StatusCode::OK.into_response())
    };
    reply::finish(result.await, OLLAMA, &record)
}

/// `POST /api/pull`
pub(super) async fn pull(State(api): State<Arc<Api>>, request: Request) -> Response {
    let record = Record::of(&request);
    let result = async {
        let request = ollama::pull(&bytes(&api, request).await?)?;
        record.model(&request.model);
        let name = name_of(&request.model)?;
        let message = "this server cannot pull models".to_owned();
        let puller = api.puller.as_ref().ok_or(ApiError::NotImplemented { message })?;
        let mut options = puller.options().clone();
        options.insecure |= request.insecure;
        let puller = puller.with_options(options);
        let lines = in_background(move |on_progress| puller.pull(&name, on_progress).map(drop));
        progress(lines, request.stream).await
    };
    reply::finish(result.await, OLLAMA, &record)
}

/// `POST /api/create`
pub(super) async fn create(State(api): State<Arc<Api>>, request: Request) -> Response {
    let record = Record::of(&request);
    let result = async {
        let request = ollama::create(&bytes(&api, request).await?)?;
        record.model(&request.model);
        let (root, name) = (api.store()?, name_of(&request.model)?);
        if let Some(from) = &request.from {
            // Known before the first line: a status of its own.
            api.model(from).await?;
        }
        let stream = request.stream;
        let recipe = recipe(request)?;
        api.changed(&name).await;
        let lines = in_background(move |on_progress| {
            rullama_pull::create(&root, &name, &recipe, on_progress).map(drop)
        });
        progress(lines, stream).await
    };
    reply::finish(result.await, OLLAMA, &record)
}

fn recipe(request: ollama::CreateRequest) -> Result<CreateRequest, ApiError> {
    let digests = |files: std::collections::BTreeMap<String, String>| {
        let read = |(name, digest): (String, String)| match Digest::parse(&digest) {
            Some(digest) => Ok((name, digest)),
            None => Err(ApiError::Invalid { message: format!("invalid digest of {name:?}") }),
        };
        files.into_iter().map(read).collect::<Result<Vec<_>, _>>()
    };
    let message = |message| serde_json::to_value(message).unwrap_or_default();
    let messages: Vec<Value> = request.messages.into_iter().map(message).collect();
    Ok(CreateRequest {
        from: request.from,
        files: digests(request.files)?,
        adapters: digests(request.adapters)?,
        draft_files: digests(request.draft_files)?,
        template: request.template,
        system: request.system,
        parameters: Some(request.parameters).filter(|parameters| !parameters.is_empty()),
        messages: Some(messages).filter(|messages| !messages.is_empty()),
        licenses: request.license,
        renderer: request.renderer,
        parser: request.parser,
        quantize: None,
    })
}

/// Runs an operation on a thread that may wait. It is cancelled when nobody reads its lines any more.
fn in_background(
    work: impl FnOnce(rullama_pull::OnProgress<'_>) -> Result<(), PullError> + Send + 'static,
) -> Receiver<Value> {
    let (sender, lines) = channel(64);
    spawn_blocking(move || {
        let mut last = None;
        let mut report = |progress: Progress| report(&sender, &mut last, &progress);
        if let Err(error) = work(&mut report) {
            // Nobody reads it where the client is gone.
            let _ = sender.blocking_send(json!({ "error": error.to_string() }));
        }
    });
    lines
}

fn report(
    sender: &Sender<Value>,
    last: &mut Option<Instant>,
    progress: &Progress,
) -> ControlFlow<()> {
    if sender.is_closed() {
        return ControlFlow::Break(());
    }
    if let Progress::Layer { total, completed, .. } = progress
        && completed < total
    {
        if last.is_some_and(|last| last.elapsed() < INTERVAL) {
            return ControlFlow::Continue(());
        }
        *last = Some(Instant::now());
    }
    let is_read = progress.line().is_none_or(|line| sender.blocking_send(line).is_ok());
    if is_read { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// The lines of an operation, or only its result.
async fn progress(mut lines: Receiver<Value>, is_streamed: bool) -> Result<Response, ApiError> {
    if is_streamed {
        let body = stream::unfold(lines, |mut lines| async move {
            let mut line = lines.recv().await?.to_string();
            line.push('\n');
            Some((Ok::<_, Infallible>(Bytes::from(line)), lines))
        });
        return Ok(reply::streamed(NDJSON, Body::from_stream(body)));
    }
    let mut last = Value::Null;
    while let Some(line) = lines.recv().await {
        last = line;
    }
    match last.get("error").and_then(Value::as_str) {
        Some(error) => Err(ApiError::Internal { message: error.to_owned() }),
        None => reply::json(&last),
    }
}

/// Why the store could not be changed.
pub(super) fn failed(error: &PullError, model: &str) -> ApiError {
    match error {
        PullError::Store(store)
            if matches!(**store, StoreError::NotFound { .. } | StoreError::NoStore { .. }) =>
        {
            ApiError::ModelNotFound { model: model.to_owned() }
        }
        PullError::BadRequest { .. }
        | PullError::BlobMismatch { .. }
        | PullError::NoSuchBlob { .. }
        | PullError::BadGguf { .. } => ApiError::Invalid { message: error.to_string() },
        _ => ApiError::Internal { message: error.to_string() },
    }
}
