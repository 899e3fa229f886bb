//! Lists of models, and the version.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State},
    response::Response,
};
use rullama_api::{
    ApiError, Dialect, Timestamp,
    listing::{ModelList, ProcessList, RunningModel, TagList, Version},
};
use serde_json::json;

use super::{Api, OLLAMA, blocking, reply};
use crate::{
    engine::{LoadedModel, ServedModel},
    record::Record,
};

impl Api {
    /// All models that can be requested.
    async fn models(&self) -> Result<Vec<Arc<ServedModel>>, ApiError> {
        let catalog = Arc::clone(&self.catalog);
        let rows = blocking(move || catalog.list()).await?;
        Ok(rows.into_iter().filter_map(|row| row.model).collect())
    }
}

/// `GET /api/version`
pub(super) async fn version(request: Request) -> Response {
    reply::finish(reply::json(&Version::default()), OLLAMA, &Record::of(&request))
}

/// `GET /api/status`: there are no cloud models here.
pub(super) async fn status(request: Request) -> Response {
    let status = json!({ "cloud": { "disabled": true, "source": "env" } });
    reply::finish(reply::json(&status), OLLAMA, &Record::of(&request))
}

/// `GET /api/tags`
pub(super) async fn tags(State(api): State<Arc<Api>>, request: Request) -> Response {
    let result = api.models().await.and_then(|models| {
        reply::json(&TagList::new(models.iter().map(|model| model.entry()).collect()))
    });
    reply::finish(result, OLLAMA, &Record::of(&request))
}

/// `GET /api/ps`
pub(super) async fn ps(State(api): State<Arc<Api>>, request: Request) -> Response {
    let loaded = api.engine.as_ref().map(|engine| engine.loaded()).unwrap_or_default();
    let running = |loaded: LoadedModel| RunningModel {
        name: loaded.model.name.clone(),
        model: loaded.model.name.clone(),
        size: loaded.size,
        digest: loaded.model.digest.clone(),
        details: loaded.model.details.clone(),
        expires_at: loaded.expires.unwrap_or(Timestamp::FAR_FUTURE),
        size_vram: loaded.size_vram,
        context_length: loaded.context_length,
    };
    let list = ProcessList::new(loaded.into_iter().map(running).collect());
    reply::finish(reply::json(&list), OLLAMA, &Record::of(&request))
}

/// `GET /v1/models`
pub(super) async fn list(State(api): State<Arc<Api>>, request: Request) -> Response {
    let result = api.models().await.and_then(|mut models| {
        models.sort_by_key(|model| std::cmp::Reverse(model.modified));
        reply::json(&ModelList::new(models.iter().map(|model| model.object()).collect()))
    });
    reply::finish(result, Dialect::OpenAi, &Record::of(&request))
}

/// `GET /v1/models/{id}`
pub(super) async fn one(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let result = api.model(&id).await.and_then(|model| reply::json(&model.object()));
    reply::finish(result, Dialect::OpenAi, &Record::of(&request))
}
