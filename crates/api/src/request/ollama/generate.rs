//! `POST /api/generate`

use super::super::shared;
use crate::fields::Fields;
use crate::{ApiError, Dialect, GenerationRequest, Input, PromptInput, PromptText, media};

/// Parses the body of `POST /api/generate`. An empty prompt loads or unloads the model.
pub fn generate(body: &[u8]) -> Result<GenerationRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let model = shared::model(&mut fields)?;
    let prompt = PromptInput {
        raw: fields.boolean("raw")?.unwrap_or(false),
        system: filled(&mut fields, "system")?,
        suffix: filled(&mut fields, "suffix")?,
        context: fields
            .take("context")
            .map(|field| shared::tokens(&field))
            .transpose()?
            .unwrap_or_default(),
        media: fields
            .list("images")?
            .into_iter()
            .map(media::from_base64)
            .collect::<Result<_, _>>()?,
        prompts: Vec::new(),
    };
    if filled(&mut fields, "template")?.is_some() {
        return Err(ApiError::unsupported(
            "template",
            "render the prompt yourself and send it with `raw`: true",
        ));
    }
    if prompt.raw && (prompt.system.is_some() || !prompt.context.is_empty()) {
        return Err(ApiError::Invalid {
            message: "raw mode does not support template, system, or context".to_owned(),
        });
    }
    let text = fields.string("prompt")?.unwrap_or_default();
    let input = if text.is_empty() && prompt.suffix.is_none() && prompt.media.is_empty() {
        Input::Load
    } else {
        Input::Prompt(PromptInput { prompts: vec![PromptText::Text(text)], ..prompt })
    };
    let mut request = GenerationRequest::new(Dialect::Ollama, model, input);
    super::chat::common(&mut fields, &mut request)?;
    Ok(request)
}

fn filled(fields: &mut Fields, name: &str) -> Result<Option<String>, ApiError> {
    Ok(fields.string(name)?.filter(|text| !text.is_empty()))
}
