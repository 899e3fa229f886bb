//! Requests about models: show, pull, delete, copy and create.

use std::collections::BTreeMap;

use rullama_chat::Message;
use serde_json::{Map, Value};

use super::super::conversation::Builder;
use super::super::shared;
use crate::fields::{Field, Fields};
use crate::{ApiError, Options};

/// A request with only a model name, such as `DELETE /api/delete`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameRequest {
    /// The model.
    pub model: String,
}

/// `POST /api/show`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShowRequest {
    /// The model.
    pub model: String,
    /// Whether long metadata arrays are included.
    pub verbose: bool,
}

/// `POST /api/pull`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// The model.
    pub model: String,
    /// Whether `http://` is allowed.
    pub insecure: bool,
    /// Whether progress is streamed.
    pub stream: bool,
}

/// `POST /api/copy`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyRequest {
    /// The existing model.
    pub source: String,
    /// The new name.
    pub destination: String,
}

/// `POST /api/create`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateRequest {
    /// The new model.
    pub model: String,
    /// A local model to start from.
    pub from: Option<String>,
    /// GGUF blobs of the model: file name → digest.
    pub files: BTreeMap<String, String>,
    /// GGUF blobs of adapters: file name → digest.
    pub adapters: BTreeMap<String, String>,
    /// GGUF blobs of a drafter: file name → digest.
    pub draft_files: BTreeMap<String, String>,
    /// A chat template.
    pub template: Option<String>,
    /// A system text.
    pub system: Option<String>,
    /// Parameters as sent; their types are checked.
    pub parameters: Map<String, Value>,
    /// Messages that precede every conversation.
    pub messages: Vec<Message>,
    /// License texts.
    pub license: Vec<String>,
    /// Name of the prompt renderer.
    pub renderer: Option<String>,
    /// Name of the output parser.
    pub parser: Option<String>,
    /// Whether progress is streamed.
    pub stream: bool,
}

/// Parses the body of `POST /api/show`.
pub fn show(body: &[u8]) -> Result<ShowRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let model = model_or_name(&mut fields)?;
    Ok(ShowRequest { model, verbose: fields.boolean("verbose")?.unwrap_or(false) })
}

/// Parses the body of `POST /api/pull`.
pub fn pull(body: &[u8]) -> Result<PullRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    Ok(PullRequest {
        model: model_or_name(&mut fields)?,
        insecure: fields.boolean("insecure")?.unwrap_or(false),
        stream: fields.boolean("stream")?.unwrap_or(true),
    })
}

/// Parses the body of `DELETE /api/delete`.
pub fn delete(body: &[u8]) -> Result<NameRequest, ApiError> {
    Ok(NameRequest { model: model_or_name(&mut Fields::parse(body)?)? })
}

/// Parses the body of `POST /api/copy`.
pub fn copy(body: &[u8]) -> Result<CopyRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let mut name = |field: &str| match fields.string(field)? {
        Some(name) if !name.is_empty() => Ok(name),
        _ => Err(ApiError::Missing { field: field.to_owned() }),
    };
    Ok(CopyRequest { source: name("source")?, destination: name("destination")? })
}

/// Parses the body of `POST /api/create`.
pub fn create(body: &[u8]) -> Result<CreateRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let model = model_or_name(&mut fields)?;
    for name in ["quantize", "quantization"] {
        if fields.string(name)?.is_some_and(|level| !level.is_empty()) {
            return Err(ApiError::unsupported(name, "start from a file that is quantised already"));
        }
    }
    let mut builder = Builder::default();
    for field in fields.list("messages")? {
        let message = super::chat::message(&mut builder, field)?;
        builder.messages.push(message);
    }
    if builder.has_media() {
        return Err(ApiError::unsupported("messages.images", "store messages of text only"));
    }
    let license = fields.take("license").map(Field::texts).transpose()?.unwrap_or_default();
    Ok(CreateRequest {
        model,
        from: fields.string("from")?.filter(|name| !name.is_empty()),
        files: digests(&mut fields, "files")?,
        adapters: digests(&mut fields, "adapters")?,
        draft_files: digests(&mut fields, "draft_files")?,
        template: fields.string("template")?,
        system: fields.string("system")?,
        parameters: parameters(fields.take("parameters"))?,
        messages: builder.messages,
        license,
        renderer: fields.string("renderer")?,
        parser: fields.string("parser")?,
        stream: fields.boolean("stream")?.unwrap_or(true),
    })
}

/// `model`, or `name` in older clients.
fn model_or_name(fields: &mut Fields) -> Result<String, ApiError> {
    match fields.string("name")?.filter(|name| !name.is_empty()) {
        Some(name) if fields.peek("model").is_none_or(|model| model == "") => Ok(name),
        _ => shared::model(fields),
    }
}

/// File names with digests `sha256:HEX`. Files other than GGUF are rejected by name.
fn digests(fields: &mut Fields, name: &str) -> Result<BTreeMap<String, String>, ApiError> {
    let Some(files) = fields.object(name)? else { return Ok(BTreeMap::new()) };
    let mut digests = BTreeMap::new();
    for (file, digest) in files.into_map() {
        if file.ends_with(".safetensors") {
            return Err(ApiError::unsupported(format!("{name}.{file}"), "convert it to GGUF"));
        }
        let is_digest = |text: &str| {
            let hex = text.strip_prefix("sha256:").or_else(|| text.strip_prefix("sha256-"));
            hex.is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
        };
        match digest {
            Value::String(digest) if is_digest(&digest) => _ = digests.insert(file, digest),
            _ => return Err(ApiError::field(format!("{name}.{file}"), "a digest sha256:HEX")),
        }
    }
    Ok(digests)
}

fn parameters(field: Option<Field>) -> Result<Map<String, Value>, ApiError> {
    let Some(field) = field else { return Ok(Map::new()) };
    Options::from_value(field.value.clone())?;
    Ok(field.object()?.into_map())
}
