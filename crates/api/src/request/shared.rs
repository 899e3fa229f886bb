//! Fields that several APIs share.

use serde_json::Value;

use crate::fields::{Field, Fields};
use crate::{ApiError, Format, GenerationRequest, Grammar, KeepAlive, LoraScale, PromptText};

/// The model's name, which is required.
pub(super) fn model(fields: &mut Fields) -> Result<String, ApiError> {
    match fields.string("model")? {
        Some(model) if !model.is_empty() => Ok(model),
        _ => Err(ApiError::ModelRequired),
    }
}

/// How long the model stays loaded.
pub(super) fn keep_alive(fields: &mut Fields) -> Result<Option<KeepAlive>, ApiError> {
    fields.take("keep_alive").map(|field| KeepAlive::read(&field)).transpose()
}

/// `stream`, `keep_alive`, `truncate`, `shift` and `lora`, accepted in every request.
pub(super) fn settings(
    fields: &mut Fields,
    request: &mut GenerationRequest,
) -> Result<(), ApiError> {
    request.stream = fields.boolean("stream")?.unwrap_or(request.stream);
    request.keep_alive = keep_alive(fields)?;
    request.truncate = fields.boolean("truncate")?.unwrap_or(request.truncate);
    request.shift = fields.boolean("shift")?.unwrap_or(request.shift);
    request.lora = fields.take("lora").map(lora).transpose()?;
    Ok(())
}

/// `[{"id": 0, "scale": 0.5}]`
pub(super) fn lora(field: Field) -> Result<Vec<LoraScale>, ApiError> {
    field
        .list()?
        .into_iter()
        .map(|field| {
            let mut adapter = field.object()?;
            let id = adapter.need("id")?.whole(0..=u32::MAX.into(), "the id of an adapter")?;
            Ok(LoraScale { id: id as u32, scale: adapter.need("scale")?.number()? })
        })
        .collect()
}

/// Whether to think, and the most tokens of thoughts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Think {
    pub(crate) on: bool,
    pub(crate) budget: Option<u32>,
}

impl Think {
    /// Thinking without a limit, or none.
    pub(super) fn plain(on: bool) -> Self {
        Self { on, budget: None }
    }

    /// Thinking at a level. Models have no levels of their own, so that the lower ones are limits; `None` for an unknown level.
    pub(super) fn level(level: &str) -> Option<Self> {
        let budget = match level {
            "minimal" => Some(512),
            "low" => Some(2048),
            "medium" => Some(8192),
            "high" | "xhigh" | "max" | "ultra" => None,
            _ => return None,
        };
        Some(Self { on: true, budget })
    }

    /// Sets it in a request.
    pub(super) fn apply(think: Option<Self>, request: &mut GenerationRequest) {
        request.think = think.map(|think| think.on);
        request.think_budget = think.and_then(|think| think.budget);
    }
}

/// Ollama's `think`: a boolean or a level.
pub(super) fn think(field: &Field) -> Result<Think, ApiError> {
    let known = match &field.value {
        Value::Bool(think) => Some(Think::plain(*think)),
        Value::String(level) if matches!(level.as_str(), "low" | "medium" | "high" | "max") => {
            Think::level(level)
        }
        _ => None,
    };
    known.ok_or_else(|| ApiError::Think { got: field.value.to_string() })
}

/// Ollama's `format`: `"json"`, a schema, or absent.
pub(super) fn ollama_format(field: Option<Field>) -> Result<Format, ApiError> {
    match field.map(|field| field.value) {
        None => Ok(Format::Text),
        Some(Value::String(text)) if text.is_empty() => Ok(Format::Text),
        Some(Value::String(text)) if text == "json" => Ok(Format::Json),
        Some(schema @ Value::Object(_)) => Ok(Format::Schema(schema)),
        Some(got) => Err(ApiError::Format { got: got.to_string() }),
    }
}

/// A schema, which must be an object or a boolean.
pub(super) fn schema(field: Field) -> Result<Format, ApiError> {
    match field.value {
        Value::Object(_) | Value::Bool(_) => Ok(Format::Schema(field.value)),
        _ => Err(field.wrong("a JSON Schema")),
    }
}

/// A grammar in llama.cpp's GBNF, or in llguidance's notation if its first line says so.
pub(super) fn grammar(field: Field) -> Result<Format, ApiError> {
    let text = field.string()?;
    Ok(match text {
        _ if text.is_empty() => Format::Text,
        _ if text.starts_with("%llguidance") => Format::Grammar(Grammar::Lark(text)),
        _ => Format::Grammar(Grammar::Gbnf(text)),
    })
}

/// A regular expression that the whole output matches.
pub(super) fn regex(field: Field) -> Result<Format, ApiError> {
    let text = field.string()?;
    Ok(if text.is_empty() { Format::Text } else { Format::Grammar(Grammar::Regex(text)) })
}

/// One of several texts.
pub(super) fn choice(field: Field) -> Result<Format, ApiError> {
    let path = field.path.clone();
    let texts = field.texts()?;
    if texts.is_empty() {
        return Err(ApiError::field(path, "a list of at least one text"));
    }
    Ok(Format::Grammar(Grammar::Choice(texts)))
}

/// `logprobs` and `top_logprobs` of Ollama and Chat Completions.
pub(super) fn logprobs(fields: &mut Fields) -> Result<Option<u8>, ApiError> {
    let wanted = fields.boolean("logprobs")?.unwrap_or(false);
    let top = fields.whole("top_logprobs", 0..=20, "a whole number from 0 to 20")?;
    match top {
        Some(top) if top > 0 && !wanted => {
            Err(ApiError::field("top_logprobs", "used together with `logprobs`: true"))
        }
        top => Ok(wanted.then_some(top.unwrap_or(0) as u8)),
    }
}

/// A text, a list of texts, token ids, or a list of token-id lists.
pub(super) fn prompts(field: Field) -> Result<Vec<PromptText>, ApiError> {
    if let Some(tokens) = field.token_ids() {
        return Ok(vec![PromptText::Tokens(tokens)]);
    }
    if let Value::String(text) = field.value {
        return Ok(vec![PromptText::Text(text)]);
    }
    const EXPECTED: &str = "a string, a list of strings, token ids, or a list of token-id lists";
    let Field { value: Value::Array(_), .. } = &field else { return Err(field.wrong(EXPECTED)) };
    field
        .list()?
        .into_iter()
        .map(|item| match item.token_ids() {
            Some(tokens) => Ok(PromptText::Tokens(tokens)),
            None if item.value.is_string() => Ok(PromptText::Text(item.string()?)),
            None => Err(item.wrong("a string or a list of token ids")),
        })
        .collect()
}

/// A list of token ids, possibly empty.
pub(super) fn tokens(field: &Field) -> Result<Vec<u32>, ApiError> {
    match field.value.as_array() {
        Some(items) if items.is_empty() => Ok(Vec::new()),
        _ => field.token_ids().ok_or_else(|| field.wrong("a list of token ids")),
    }
}
