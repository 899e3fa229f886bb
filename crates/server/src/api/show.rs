//! `POST /api/show`: everything a model's files say.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::header,
    response::Response,
};
use rullama_api::{
    ApiError,
    listing::{ShowReply, TensorEntry, parameters_text},
    request::ollama,
};
use rullama_gguf::{Gguf, Value as GgufValue};
use serde_json::{Map, Value, json};

use super::{Api, OLLAMA, blocking, body, reply};
use crate::{
    engine::{ModelPlace, ServedModel},
    facts,
    record::Record,
};

/// Longer arrays are left empty unless the request is verbose.
const SHORT_ARRAY: usize = 5;

/// Models without a template of their own use the built-in one. Clients look for the word `tools` in it.
const BUILT_IN: &str =
    "{{- /* rullama's built-in Gemma 4 template: .System .Messages .tools */ -}}{{ .Prompt }}";

/// `POST /api/show`
pub(super) async fn show(State(api): State<Arc<Api>>, request: Request) -> Response {
    let record = Record::of(&request);
    let result = async {
        let (head, body) = request.into_parts();
        let bytes = body::read(&api.limits, &head.headers, body).await?;
        let request = ollama::show(&bytes)?;
        record.model(&request.model);
        let model = api.model(&request.model).await?;
        let mut shown = blocking(move || describe(&model, request.verbose)).await??;
        let agent = head.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        if agent.is_some_and(|agent| agent.starts_with("GitHubCopilotChat/")) {
            // Copilot shows it as the model's name.
            shown.model_info.insert("general.basename".to_owned(), request.model.into());
        }
        reply::json(&shown)
    };
    reply::finish(result.await, OLLAMA, &record)
}

/// The chat template of a model, as far as it brings one.
pub(super) async fn template(model: Arc<ServedModel>) -> Result<String, ApiError> {
    blocking(move || {
        let gguf = header(&model)?;
        Ok(gguf.str("tokenizer.chat_template").map_or_else(|_| stored(&model), str::to_owned))
    })
    .await?
}

fn stored(model: &ServedModel) -> String {
    let own = match &model.place {
        ModelPlace::Store(files) => files.template.clone(),
        ModelPlace::File(_) => None,
    };
    // Ollama's own template of Gemma 4 is a bare placeholder: its renderer does the work.
    own.filter(|text| text.contains("tools")).unwrap_or_else(|| BUILT_IN.to_owned())
}

fn header(model: &ServedModel) -> Result<Gguf, ApiError> {
    let path = match &model.place {
        ModelPlace::Store(files) => &files.model.path,
        ModelPlace::File(path) => path,
    };
    facts::open(path).map_err(|error| ApiError::Internal { message: error.to_string() })
}

fn describe(model: &ServedModel, verbose: bool) -> Result<ShowReply, ApiError> {
    let gguf = header(model)?;
    let parameters = parameters_text(&model.parameters);
    let mut reply = ShowReply {
        template: stored(model),
        system: model.system.clone().unwrap_or_default(),
        details: model.details.clone(),
        messages: model.messages.clone(),
        model_info: info(&gguf, verbose),
        capabilities: model.capabilities.clone(),
        modified_at: model.modified,
        ..ShowReply::default()
    };
    if let ModelPlace::Store(files) = &model.place {
        reply.license = files.licenses.join("\n\n");
        reply.renderer = files.config.renderer.clone().unwrap_or_default();
        reply.parser = files.config.parser.clone().unwrap_or_default();
        reply.requires = files.config.requires.clone().unwrap_or_default();
        let projector = files.projectors.first().and_then(|layer| facts::open(&layer.path).ok());
        reply.projector_info = projector.map(|gguf| info(&gguf, verbose)).unwrap_or_default();
    }
    reply.modelfile = modelfile(model, &parameters);
    reply.parameters = parameters;
    if verbose {
        let entry = |tensor: &rullama_gguf::TensorInfo| TensorEntry {
            name: tensor.name().to_owned(),
            kind: tensor.dtype().name().to_owned(),
            shape: tensor.dims().to_vec(),
        };
        reply.tensors = gguf.tensors().iter().map(entry).collect();
    }
    Ok(reply)
}

/// A Modelfile that would make this model again.
fn modelfile(model: &ServedModel, parameters: &str) -> String {
    let from = match &model.place {
        ModelPlace::Store(files) => files.model.path.display().to_string(),
        ModelPlace::File(path) => path.display().to_string(),
    };
    let mut text = format!("# FROM {}\n\nFROM {from}\n", model.name);
    if let Some(system) = &model.system {
        text.push_str(&format!("SYSTEM \"\"\"{system}\"\"\"\n"));
    }
    for line in parameters.lines() {
        text.push_str(&format!("PARAMETER {line}\n"));
    }
    text
}

/// A file's metadata.
fn info(gguf: &Gguf, verbose: bool) -> Map<String, Value> {
    let shown = |key: &str| !matches!(key, "general.name" | "tokenizer.chat_template");
    let mut map: Map<String, Value> = gguf
        .metadata()
        .iter()
        .filter(|entry| shown(&entry.key))
        .map(|entry| (entry.key.clone(), value(&entry.value, verbose)))
        .collect();
    let elements = gguf.tensors().iter().map(rullama_gguf::TensorInfo::elements);
    let count = elements.fold(0, u64::saturating_add);
    map.entry("general.parameter_count").or_insert(count.into());
    map
}

fn value(value: &GgufValue, verbose: bool) -> Value {
    match value {
        GgufValue::Array(array) if !verbose && array.len() > SHORT_ARRAY => json!([]),
        _ => serde_json::from_str(&value.json()).unwrap_or_default(),
    }
}
