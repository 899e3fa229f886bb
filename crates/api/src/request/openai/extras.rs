//! Sampling and other fields that Chat Completions, Completions and Responses share.

use super::super::shared;
use crate::fields::Fields;
use crate::{ApiError, GenerationRequest, Options};

/// Maximum number of choices per request, as in OpenAI's API.
const MAX_CHOICES: i64 = 128;

/// Parses the fields for sampling and streaming. `limits` names the fields for the token limit; the first one present wins.
pub(super) fn read(
    fields: &mut Fields,
    request: &mut GenerationRequest,
    limits: &[&str],
    least: i64,
) -> Result<(), ApiError> {
    shared::settings(fields, request)?;
    let below = fields.take("options").map(Options::read).transpose()?.unwrap_or_default();
    request.options = Options::take(fields)?.over(below);
    let mut limit = None;
    for name in limits {
        let range = least..=i64::MAX;
        let expected = if least > 0 { "a positive whole number" } else { "a whole number" };
        limit = limit.or(fields.whole(name, range, expected)?);
    }
    request.options.limit(limit);
    let n = fields.whole("n", 1..=MAX_CHOICES, "a whole number from 1 to 128")?;
    request.n = n.unwrap_or(1) as u32;
    if let Some(mut options) = fields.object("stream_options")? {
        request.include_usage = options.boolean("include_usage")?.unwrap_or(false);
    }
    Ok(())
}

/// Refuses unsupported fields that would change the output, unless they are empty.
pub(super) fn refuse(
    fields: &mut Fields,
    refused: &[(&str, &'static str)],
) -> Result<(), ApiError> {
    for (name, advice) in refused {
        let Some(field) = fields.take(name) else { continue };
        let is_empty = match &field.value {
            serde_json::Value::Bool(value) => !value,
            serde_json::Value::Array(list) => list.is_empty(),
            serde_json::Value::String(text) => text.is_empty(),
            _ => false,
        };
        if !is_empty {
            return Err(ApiError::unsupported(field.path, advice));
        }
    }
    Ok(())
}
