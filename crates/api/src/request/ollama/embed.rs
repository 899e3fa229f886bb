//! `POST /api/embed` and the older `/api/embeddings`

use super::super::shared;
use crate::fields::Fields;
use crate::{ApiError, Dialect, EmbeddingEncoding, EmbeddingRequest, Options, PromptText};

/// Parses the body of `POST /api/embed`.
pub fn embed(body: &[u8]) -> Result<EmbeddingRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let mut request = common(&mut fields)?;
    if let Some(field) = fields.take("input") {
        let expected = "a string or a list of strings";
        let texts = match field.value.is_string() || field.value.is_array() {
            true => field.texts()?,
            false => return Err(field.wrong(expected)),
        };
        // Ollama treats an empty text as no input.
        let is_nothing = matches!(texts.as_slice(), [text] if text.is_empty());
        let texts = if is_nothing { Vec::new() } else { texts };
        request.input = texts.into_iter().map(PromptText::Text).collect();
    }
    let range = 1..=i64::from(u32::MAX);
    let dimensions = fields.take("dimensions").filter(|field| field.value != 0);
    request.dimensions = dimensions
        .map(|field| field.whole(range, "a positive whole number"))
        .transpose()?
        .map(|dimensions| dimensions as u32);
    Ok(request)
}

/// Parses the body of `POST /api/embeddings`: one prompt, whose vector is not normalised.
pub fn embeddings(body: &[u8]) -> Result<EmbeddingRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let mut request = common(&mut fields)?;
    let prompt = fields.string("prompt")?.filter(|prompt| !prompt.is_empty());
    request.input = prompt.map(PromptText::Text).into_iter().collect();
    request.normalize = false;
    Ok(request)
}

fn common(fields: &mut Fields) -> Result<EmbeddingRequest, ApiError> {
    Ok(EmbeddingRequest {
        dialect: Dialect::Ollama,
        model: shared::model(fields)?,
        input: Vec::new(),
        truncate: fields.boolean("truncate")?.unwrap_or(true),
        normalize: true,
        dimensions: None,
        encoding: EmbeddingEncoding::Float,
        options: fields.take("options").map(Options::read).transpose()?.unwrap_or_default(),
        keep_alive: shared::keep_alive(fields)?,
    })
}
