//! llama.cpp's additional requests: `/tokenize`, `/detokenize`, `/apply-template`, `/lora-adapters`.

use serde_json::Value;

use super::conversation::{Builder, Trailing};
use super::{openai, shared, tools};
use crate::fields::{Field, Fields, parse_json};
use crate::{ApiError, ChatInput, LoraScale};

/// `POST /tokenize`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizeRequest {
    /// The model; absent: the loaded one.
    pub model: Option<String>,
    /// The text.
    pub content: String,
    /// Whether to add the beginning-of-sequence token.
    pub add_special: bool,
    /// Whether control tokens in the text are recognised.
    pub parse_special: bool,
    /// Whether each token's text is requested too.
    pub with_pieces: bool,
}

/// `POST /detokenize`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetokenizeRequest {
    /// The model; absent: the loaded one.
    pub model: Option<String>,
    /// The tokens, not yet checked against the vocabulary.
    pub tokens: Vec<u32>,
}

/// `POST /apply-template`
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyTemplateRequest {
    /// The model; absent: the loaded one.
    pub model: Option<String>,
    /// The messages and tools.
    pub chat: ChatInput,
    /// Whether the model shall think.
    pub think: Option<bool>,
}

/// Parses the body of `POST /tokenize`.
pub fn tokenize(body: &[u8]) -> Result<TokenizeRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    Ok(TokenizeRequest {
        model: model(&mut fields)?,
        content: fields.need("content")?.string()?,
        add_special: fields.boolean("add_special")?.unwrap_or(false),
        parse_special: fields.boolean("parse_special")?.unwrap_or(true),
        with_pieces: fields.boolean("with_pieces")?.unwrap_or(false),
    })
}

/// Parses the body of `POST /detokenize`.
pub fn detokenize(body: &[u8]) -> Result<DetokenizeRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    Ok(DetokenizeRequest {
        model: model(&mut fields)?,
        tokens: shared::tokens(&fields.need("tokens")?)?,
    })
}

/// Parses the body of `POST /apply-template`, whose messages and tools are OpenAI's.
pub fn apply_template(body: &[u8]) -> Result<ApplyTemplateRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let model = model(&mut fields)?;
    let mut builder = Builder::default();
    for field in fields.need("messages")?.list()? {
        let message = openai::message(&mut builder, field)?;
        builder.messages.push(message);
    }
    let tools = tools::nested(fields.list("tools")?)?;
    let think = openai::think(&mut fields)?.map(|think| think.on);
    Ok(ApplyTemplateRequest { model, chat: builder.finish(tools, Trailing::Prefill)?, think })
}

/// Parses the body of `POST /lora-adapters`: scales by adapter; those not listed are 0.
pub fn lora_adapters(body: &[u8]) -> Result<Vec<LoraScale>, ApiError> {
    let value @ Value::Array(_) = parse_json(body)? else {
        return Err(ApiError::field("body", "a list of adapters"));
    };
    shared::lora(Field { value, path: String::new() })
}

fn model(fields: &mut Fields) -> Result<Option<String>, ApiError> {
    Ok(fields.string("model")?.filter(|model| !model.is_empty()))
}
