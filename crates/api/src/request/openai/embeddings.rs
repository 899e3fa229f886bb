//! `POST /v1/embeddings`

use super::super::shared;
use crate::fields::Fields;
use crate::{ApiError, Dialect, EmbeddingEncoding, EmbeddingRequest, Options, PromptText};

/// Parses the body of `POST /v1/embeddings`.
pub fn embeddings(body: &[u8]) -> Result<EmbeddingRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let model = shared::model(&mut fields)?;
    let input = shared::prompts(fields.need("input")?)?;
    let is_empty = |text: &PromptText| matches!(text, PromptText::Text(text) if text.is_empty());
    if input.is_empty() || input.iter().any(is_empty) {
        return Err(ApiError::field("input", "at least one text, none of them empty"));
    }
    let dimensions = fields.whole("dimensions", 1..=u32::MAX.into(), "a positive whole number")?;
    let encoding = match fields.take("encoding_format") {
        None => EmbeddingEncoding::Float,
        Some(field) => match field.value.as_str() {
            Some("float") => EmbeddingEncoding::Float,
            Some("base64") => EmbeddingEncoding::Base64,
            _ => return Err(field.wrong("\"float\" or \"base64\"")),
        },
    };
    Ok(EmbeddingRequest {
        dialect: Dialect::OpenAi,
        model,
        input,
        truncate: fields.boolean("truncate")?.unwrap_or(false),
        normalize: true,
        dimensions: dimensions.map(|dimensions| dimensions as u32),
        encoding,
        options: fields.take("options").map(Options::read).transpose()?.unwrap_or_default(),
        keep_alive: shared::keep_alive(&mut fields)?,
    })
}
