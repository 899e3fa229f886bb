//! Output formats and reasoning effort.

use super::super::shared;
use crate::fields::{Field, Fields};
use crate::{ApiError, Format};

/// `response_format` of Chat Completions, where the schema is nested, or `text.format` of Responses, where it is flat.
pub(super) fn response_format(field: Option<Field>) -> Result<Format, ApiError> {
    let Some(field) = field else { return Ok(Format::Text) };
    let mut fields = field.object()?;
    let kind = fields.need("type")?;
    match kind.value.as_str() {
        Some("text") => Ok(Format::Text),
        Some("json_object") => fields.take("schema").map_or(Ok(Format::Json), shared::schema),
        Some("json_schema") => {
            let mut inner = match fields.object("json_schema")? {
                Some(inner) => inner,
                None => fields,
            };
            shared::schema(inner.need("schema")?)
        }
        _ => Err(kind.wrong("\"text\", \"json_object\" or \"json_schema\"")),
    }
}

/// The format from `response_format` and llama.cpp's `grammar` and `json_schema`, of which at most one may be given.
pub(super) fn all_formats(fields: &mut Fields) -> Result<Format, ApiError> {
    let given = [
        response_format(fields.take("response_format"))?,
        fields.take("json_schema").map(shared::schema).transpose()?.unwrap_or_default(),
        fields.take("grammar").map(shared::grammar).transpose()?.unwrap_or_default(),
    ];
    let mut given = given.into_iter().filter(|format| *format != Format::Text);
    match (given.next(), given.next()) {
        (_, Some(_)) => Err(ApiError::Invalid {
            message: "only one of `response_format`, `json_schema` and `grammar` can be used"
                .to_owned(),
        }),
        (format, None) => Ok(format.unwrap_or_default()),
    }
}

/// Whether to think: `reasoning_effort`, `reasoning.effort`, Ollama's `think` or `chat_template_kwargs.enable_thinking`.
pub(in crate::request) fn think(fields: &mut Fields) -> Result<Option<bool>, ApiError> {
    let nested = match fields.object("reasoning")? {
        Some(mut reasoning) => reasoning.take("effort"),
        None => None,
    };
    if let Some(field) = fields.take("reasoning_effort").or(nested) {
        return effort(&field).map(Some);
    }
    if let Some(field) = fields.take("think") {
        return shared::think(&field).map(Some);
    }
    match fields.object("chat_template_kwargs")? {
        Some(mut arguments) => arguments.boolean("enable_thinking"),
        None => Ok(None),
    }
}

fn effort(field: &Field) -> Result<bool, ApiError> {
    match field.value.as_str() {
        Some("none") => Ok(false),
        Some("minimal" | "low" | "medium" | "high" | "xhigh" | "max" | "ultra") => Ok(true),
        _ => Err(field.wrong(
            "\"none\", \"minimal\", \"low\", \"medium\", \"high\", \"xhigh\", \"max\" or \"ultra\"",
        )),
    }
}
