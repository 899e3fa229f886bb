//! Output formats and reasoning effort.

use super::super::shared::{self, Think};
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

/// Reads a field as a format.
type ReadFormat = fn(Field) -> Result<Format, ApiError>;

/// Fields that constrain the output besides `response_format`: llama.cpp's, then vLLM's.
const FORMATS: [(&str, ReadFormat); 6] = [
    ("json_schema", shared::schema),
    ("grammar", shared::grammar),
    ("guided_json", shared::schema),
    ("guided_grammar", shared::grammar),
    ("guided_regex", shared::regex),
    ("guided_choice", shared::choice),
];

/// The format from `response_format` and the fields of [`FORMATS`], of which at most one may be given.
pub(super) fn all_formats(fields: &mut Fields) -> Result<Format, ApiError> {
    let mut given = vec![response_format(fields.take("response_format"))?];
    for (name, read) in FORMATS {
        given.extend(fields.take(name).map(read).transpose()?);
    }
    let mut given = given.into_iter().filter(|format| *format != Format::Text);
    match (given.next(), given.next()) {
        (_, Some(_)) => Err(ApiError::Invalid {
            message: "only one of `response_format`, `json_schema`, `grammar` and vLLM's `guided_…` can be used"
                .to_owned(),
        }),
        (format, None) => Ok(format.unwrap_or_default()),
    }
}

/// Whether to think: `reasoning_effort`, `reasoning.effort`, Ollama's `think` or `chat_template_kwargs.enable_thinking`.
pub(in crate::request) fn think(fields: &mut Fields) -> Result<Option<Think>, ApiError> {
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
        Some(mut arguments) => Ok(arguments.boolean("enable_thinking")?.map(Think::plain)),
        None => Ok(None),
    }
}

fn effort(field: &Field) -> Result<Think, ApiError> {
    let known = match field.value.as_str() {
        Some("none") => Some(Think::plain(false)),
        level => level.and_then(Think::level),
    };
    known.ok_or_else(|| {
        field.wrong(
            "\"none\", \"minimal\", \"low\", \"medium\", \"high\", \"xhigh\", \"max\" or \"ultra\"",
        )
    })
}
