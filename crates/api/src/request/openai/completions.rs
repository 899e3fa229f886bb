//! `POST /v1/completions`

use super::super::shared;
use super::{extras, format};
use crate::fields::Fields;
use crate::{ApiError, Dialect, GenerationRequest, Input, PromptInput};

/// Maximum number of prompts per request.
const MAX_PROMPTS: usize = 2048;

/// Parses the body of `POST /v1/completions`. `raw` skips the chat template.
pub fn completions(body: &[u8]) -> Result<GenerationRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let model = shared::model(&mut fields)?;
    let prompts = shared::prompts(fields.need("prompt")?)?;
    if prompts.is_empty() || prompts.len() > MAX_PROMPTS {
        return Err(ApiError::field("prompt", "a list of 1 to 2048 prompts"));
    }
    let prompt = PromptInput {
        prompts,
        raw: fields.boolean("raw")?.unwrap_or(false),
        suffix: fields.string("suffix")?.filter(|text| !text.is_empty()),
        ..PromptInput::default()
    };
    let mut request = GenerationRequest::new(Dialect::OpenAi, model, Input::Prompt(prompt));
    request.echo = fields.boolean("echo")?.unwrap_or(false);
    request.format = format::all_formats(&mut fields)?;
    // Completions have no field for thoughts.
    let think = format::think(&mut fields)?.unwrap_or(shared::Think::plain(false));
    shared::Think::apply(Some(think), &mut request);
    let logprobs = fields.take("logprobs").filter(|field| field.value != false);
    request.logprobs = logprobs
        .map(|field| field.whole(0..=5, "a whole number from 0 to 5"))
        .transpose()?
        .map(|top| top as u8);
    // With `echo`, zero tokens is a way to inspect the prompt.
    extras::read(&mut fields, &mut request, &["max_tokens", "n_predict"], 0)?;
    let best_of = fields.whole("best_of", 1..=128, "a whole number from 1 to 128")?;
    if best_of.is_some_and(|best| best != i64::from(request.n)) {
        return Err(ApiError::unsupported("best_of", "use `n` and choose yourself"));
    }
    Ok(request)
}
