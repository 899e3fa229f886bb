//! The APIs of Ollama, OpenAI, Anthropic and llama.cpp over an [`Engine`].

mod body;
mod counters;
mod embed;
mod extras;
mod generate;
mod manage;
mod models;
mod prepare;
mod reply;
mod show;
mod stream;
mod uploads;

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    response::Response,
    routing::{any, delete, get, head, post},
};
use rullama_api::{ApiError, Capability, Dialect};
use rullama_pull::Puller;
use tokio::task::spawn_blocking;

use crate::{
    ApiLimits,
    catalog::Catalog,
    engine::{Engine, ServedModel},
};
use counters::Counters;
pub(crate) use reply::{dialect_of, refuse};

/// What all API requests share.
pub(crate) struct Api {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) engine: Option<Arc<dyn Engine>>,
    pub(crate) puller: Option<Puller>,
    pub(crate) limits: ApiLimits,
    pub(crate) counters: Arc<Counters>,
}

impl Api {
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        engine: Option<Arc<dyn Engine>>,
        puller: Option<Puller>,
        limits: ApiLimits,
    ) -> Self {
        Self { catalog, engine, puller, limits, counters: Arc::default() }
    }

    fn engine(&self) -> Result<&Arc<dyn Engine>, ApiError> {
        let message = "this server only serves files; start it with `rullama serve`";
        self.engine.as_ref().ok_or_else(|| ApiError::NotImplemented { message: message.into() })
    }

    /// The model that a request names.
    async fn model(&self, name: &str) -> Result<Arc<ServedModel>, ApiError> {
        let (catalog, wanted) = (Arc::clone(&self.catalog), name.to_owned());
        match blocking(move || catalog.find(&wanted)).await? {
            Ok(Some(model)) => Ok(model),
            Ok(None) => Err(ApiError::ModelNotFound { model: name.to_owned() }),
            Err(message) => Err(ApiError::Internal { message }),
        }
    }

    /// The model that a request names, or, without a name, the one that is loaded.
    async fn model_or_loaded(&self, name: Option<&str>) -> Result<Arc<ServedModel>, ApiError> {
        if let Some(name) = name {
            return self.model(name).await;
        }
        let loaded = self.engine()?.loaded();
        if let Some(first) = loaded.into_iter().next() {
            return Ok(first.model);
        }
        let catalog = Arc::clone(&self.catalog);
        let rows = blocking(move || catalog.list()).await?;
        let mut models = rows.into_iter().filter_map(|row| row.model);
        let mut chat = models.by_ref().filter(|model| model.can(Capability::Completion));
        match (chat.next(), chat.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(ApiError::ModelRequired),
        }
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

/// All routes but those of the app and of model files.
pub(crate) fn routes() -> Router<Arc<Api>> {
    let ollama = Router::new()
        .route("/version", get(models::version))
        .route("/tags", get(models::tags))
        .route("/ps", get(models::ps))
        .route("/status", get(models::status))
        .route("/show", post(show::show))
        .route("/chat", post(generate::ollama_chat))
        .route("/generate", post(generate::ollama_generate))
        .route("/embed", post(embed::ollama_embed))
        .route("/embeddings", post(embed::ollama_embeddings))
        .route("/pull", post(manage::pull))
        .route("/push", post(manage::push))
        .route("/delete", delete(manage::delete))
        .route("/copy", post(manage::copy))
        .route("/create", post(manage::create))
        .route("/blobs/{digest}", head(uploads::exists).post(uploads::upload));
    let v1 = Router::new()
        .route("/models", get(models::list))
        .route("/models/{*id}", get(models::one))
        .route("/health", get(extras::health))
        .route("/chat/completions", post(generate::chat_completions))
        .route("/completions", post(generate::completions))
        .route("/responses", post(generate::responses))
        .route("/embeddings", post(embed::openai))
        .route("/audio/transcriptions", post(generate::transcriptions))
        .route("/messages", post(generate::messages))
        .route("/messages/count_tokens", post(generate::count_tokens))
        .route("/rerank", post(extras::not_supported));
    let extras = Router::new()
        .route("/health", get(extras::health))
        .route("/metrics", get(extras::metrics))
        .route("/props", get(extras::props))
        .route("/tokenize", post(extras::tokenize))
        .route("/detokenize", post(extras::detokenize))
        .route("/apply-template", post(extras::apply_template))
        .route("/lora-adapters", get(extras::adapters).post(extras::set_adapters))
        .method_not_allowed_fallback(wrong_method);
    let not_supported =
        |routes: Router<Arc<Api>>, path: &&str| routes.route(path, any(extras::not_supported));
    let extras = reply::NOT_SUPPORTED.iter().fold(extras, not_supported);
    let nested = |routes: Router<Arc<Api>>| {
        routes.fallback(nothing).method_not_allowed_fallback(wrong_method)
    };
    Router::new().nest("/api", nested(ollama)).nest("/v1", nested(v1)).merge(extras)
}

async fn nothing(request: Request) -> Response {
    refuse(&request, &ApiError::RouteNotFound)
}

async fn wrong_method(request: Request) -> Response {
    refuse(&request, &ApiError::MethodNotAllowed)
}

/// Runs what waits for the disk on a thread that may wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let failed = |error: tokio::task::JoinError| ApiError::Internal { message: error.to_string() };
    spawn_blocking(work).await.map_err(failed)
}

/// The dialect of routes that only one API has.
const OLLAMA: Dialect = Dialect::Ollama;
