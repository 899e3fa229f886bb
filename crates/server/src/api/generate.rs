//! Routes that generate.

use std::sync::Arc;

use axum::{
    extract::{FromRequest as _, Multipart, Request, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use rullama_api::{
    ApiError, Dialect, GenerationRequest, Input,
    request::{
        anthropic, ollama,
        openai::{self, FormField, TranscriptionFormat, TranscriptionRequest},
    },
    response::{
        anthropic::{MessagesWriter, token_count},
        ollama::OllamaWriter,
        openai::{ChatWriter, CompletionsWriter, ResponsesWriter, TranscriptionWriter},
    },
};

use super::{
    Api, OLLAMA, body,
    counters::Counters,
    prepare, reply,
    stream::{Running, Writer},
};
use crate::{clock::Clock, record::Record};

type Parsed = Result<(GenerationRequest, Writer), ApiError>;

/// Reads a request in one of the APIs and generates.
async fn answer(
    api: Arc<Api>,
    request: Request,
    dialect: Dialect,
    parse: fn(&[u8], &mut Clock) -> Parsed,
) -> Response {
    let record = Record::of(&request);
    let result = async {
        let (head, body) = request.into_parts();
        let bytes = body::read(&api.limits, &head.headers, body).await?;
        let mut clock = Clock::default();
        let (generation, writer) = parse(&bytes, &mut clock)?;
        generate(&api, &record, generation, writer, clock).await
    };
    reply::finish(result.await, dialect, &record)
}

async fn generate(
    api: &Api,
    record: &Arc<Record>,
    request: GenerationRequest,
    writer: Writer,
    clock: Clock,
) -> Result<Response, ApiError> {
    let is_streamed = request.stream;
    let (running, request) = start(api, record, request, writer, clock).await?;
    if is_streamed { running.stream().await } else { reply::json(&running.body(&request).await?) }
}

/// Hands a request to the engine.
async fn start(
    api: &Api,
    record: &Arc<Record>,
    request: GenerationRequest,
    writer: Writer,
    clock: Clock,
) -> Result<(Running, GenerationRequest), ApiError> {
    record.model(&request.model);
    let model = api.model(&request.model).await?;
    let request = prepare::generation(&model, request, &api.limits)?;
    let place = Counters::enter(&api.counters, api.limits.queue)?;
    let events = api.engine()?.generate(model, request.clone()).await?;
    let record = Arc::clone(record);
    Ok((Running { writer, clock, events, place, record }, request))
}

/// `POST /api/chat`
pub(super) async fn ollama_chat(State(api): State<Arc<Api>>, request: Request) -> Response {
    ollama_answer(api, request, ollama::chat, OllamaWriter::chat).await
}

/// `POST /api/generate`
pub(super) async fn ollama_generate(State(api): State<Arc<Api>>, request: Request) -> Response {
    ollama_answer(api, request, ollama::generate, OllamaWriter::generate).await
}

/// Ollama's requests may also load, unload or render.
async fn ollama_answer(
    api: Arc<Api>,
    request: Request,
    parse: fn(&[u8]) -> Result<GenerationRequest, ApiError>,
    writer: fn(&GenerationRequest) -> OllamaWriter,
) -> Response {
    let record = Record::of(&request);
    let result = async {
        let (head, body) = request.into_parts();
        let bytes = body::read(&api.limits, &head.headers, body).await?;
        let generation = parse(&bytes)?;
        let writer = writer(&generation);
        let mut clock = Clock::default();
        if generation.input == Input::Load {
            let unload = generation.is_unload();
            load(&api, &record, generation).await?;
            return reply::json(&writer.loaded(&mut clock, unload));
        }
        if generation.debug_render_only {
            let images = count_media(&generation);
            let rendered = render(&api, &record, generation).await?;
            return reply::json(&writer.rendered(&mut clock, &rendered.prompt, images));
        }
        generate(&api, &record, generation, Box::new(writer), clock).await
    };
    reply::finish(result.await, OLLAMA, &record)
}

async fn load(api: &Api, record: &Record, request: GenerationRequest) -> Result<(), ApiError> {
    record.model(&request.model);
    let model = api.model(&request.model).await?;
    let engine = api.engine()?;
    if request.is_unload() {
        return engine.unload(&model.name).await;
    }
    let request = prepare::generation(&model, request, &api.limits)?;
    engine.load(model, request.options, request.keep_alive).await
}

async fn render(
    api: &Api,
    record: &Record,
    request: GenerationRequest,
) -> Result<crate::engine::Rendered, ApiError> {
    record.model(&request.model);
    let model = api.model(&request.model).await?;
    let request = prepare::generation(&model, request, &api.limits)?;
    api.engine()?.render(model, request).await
}

fn count_media(request: &GenerationRequest) -> usize {
    match &request.input {
        Input::Chat(chat) => chat.media.len(),
        Input::Prompt(prompt) => prompt.media.len(),
        Input::Load => 0,
    }
}

/// `POST /v1/chat/completions`
pub(super) async fn chat_completions(State(api): State<Arc<Api>>, request: Request) -> Response {
    answer(api, request, Dialect::OpenAi, |bytes, clock| {
        let request = openai::chat_completions(bytes)?;
        let writer = ChatWriter::new(clock, &request);
        Ok((request, Box::new(writer)))
    })
    .await
}

/// `POST /v1/completions`
pub(super) async fn completions(State(api): State<Arc<Api>>, request: Request) -> Response {
    answer(api, request, Dialect::OpenAi, |bytes, clock| {
        let request = openai::completions(bytes)?;
        let writer = CompletionsWriter::new(clock, &request);
        Ok((request, Box::new(writer)))
    })
    .await
}

/// `POST /v1/responses`
pub(super) async fn responses(State(api): State<Arc<Api>>, request: Request) -> Response {
    answer(api, request, Dialect::OpenAi, |bytes, clock| {
        let request = openai::responses(bytes)?;
        let writer = ResponsesWriter::new(clock, &request);
        Ok((request.generation, Box::new(writer)))
    })
    .await
}

/// `POST /v1/messages`
pub(super) async fn messages(State(api): State<Arc<Api>>, request: Request) -> Response {
    answer(api, request, Dialect::Anthropic, |bytes, clock| {
        let request = anthropic::messages(bytes)?;
        let writer = MessagesWriter::new(clock, &request);
        Ok((request, Box::new(writer)))
    })
    .await
}

/// `POST /v1/messages/count_tokens`
pub(super) async fn count_tokens(State(api): State<Arc<Api>>, request: Request) -> Response {
    let record = Record::of(&request);
    let result = async {
        let (head, body) = request.into_parts();
        let bytes = body::read(&api.limits, &head.headers, body).await?;
        let rendered = render(&api, &record, anthropic::count_tokens(&bytes)?).await?;
        reply::json(&token_count(rendered.tokens))
    };
    reply::finish(result.await, Dialect::Anthropic, &record)
}

/// `POST /v1/audio/transcriptions`
pub(super) async fn transcriptions(State(api): State<Arc<Api>>, request: Request) -> Response {
    let record = Record::of(&request);
    let result = async {
        body::check_length(request.headers(), api.limits.body)?;
        let form = Multipart::from_request(request, &()).await.map_err(form_error)?;
        let TranscriptionRequest { generation, format } =
            openai::transcriptions(read(&api, form).await?)?;
        let writer = Box::new(TranscriptionWriter::new());
        if generation.stream || format == TranscriptionFormat::Json {
            return generate(&api, &record, generation, writer, Clock::default()).await;
        }
        let (running, generation) =
            start(&api, &record, generation, writer, Clock::default()).await?;
        let body = running.body(&generation).await?;
        let text = body["text"].as_str().unwrap_or_default().to_owned();
        let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        Ok((StatusCode::OK, kind, text).into_response())
    };
    reply::finish(result.await, Dialect::OpenAi, &record)
}

/// The fields of a form, within the limit of a body.
async fn read(api: &Api, mut form: Multipart) -> Result<Vec<FormField>, ApiError> {
    let limit = api.limits.body;
    let (mut fields, mut total) = (Vec::new(), 0);
    while let Some(mut field) = form.next_field().await.map_err(form_error)? {
        let name = field.name().unwrap_or_default().to_owned();
        let mut bytes = Vec::new();
        while let Some(piece) = field.chunk().await.map_err(form_error)? {
            total += piece.len() as u64;
            if total > limit {
                return Err(ApiError::TooLarge { limit });
            }
            bytes.extend_from_slice(&piece);
        }
        fields.push(FormField { name, bytes });
    }
    Ok(fields)
}

fn form_error(error: impl std::fmt::Display) -> ApiError {
    ApiError::Invalid { message: format!("the body must be a multipart form: {error}") }
}
