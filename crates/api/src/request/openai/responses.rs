//! `POST /v1/responses`

use rullama_chat::Tool;
use serde_json::{Map, Value, json};

use super::super::conversation::{Builder, Trailing};
use super::super::{shared, tools};
use super::{extras, format, input_items};
use crate::fields::{Field, Fields};
use crate::{ApiError, Dialect, GenerationRequest, Input};

/// A request of the Responses API.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponsesRequest {
    /// The generation request.
    pub generation: GenerationRequest,
    /// Fields that the response echoes.
    pub echo: Map<String, Value>,
}

/// Fields that refer to earlier responses, which are not stored.
const REFUSED: [(&str, &str); 4] = [
    ("previous_response_id", "responses are not stored; send the whole conversation in `input`"),
    ("conversation", "conversations are not stored; send the whole conversation in `input`"),
    ("background", "leave it out and wait for the response"),
    ("prompt", "prompts are not stored; send `input`"),
];

/// Parses the body of `POST /v1/responses`.
pub fn responses(body: &[u8]) -> Result<ResponsesRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let model = shared::model(&mut fields)?;
    extras::refuse(&mut fields, &REFUSED)?;
    let echo = echo(&fields);
    let tools = flat(fields.list("tools")?)?;
    let choice = tools::choice(fields.take("tool_choice"), &tools)?;
    let mut builder = Builder::default();
    builder.system(fields.string("instructions")?);
    input_items::read(&mut builder, fields.need("input")?)?;
    let input = Input::Chat(builder.finish(tools, Trailing::Turn)?);
    let mut request = GenerationRequest::new(Dialect::OpenAi, model, input);
    request.tool_choice = choice;
    request.parallel_tool_calls = fields.boolean("parallel_tool_calls")?.unwrap_or(true);
    shared::Think::apply(format::think(&mut fields)?, &mut request);
    if let Some(mut text) = fields.object("text")? {
        request.format = format::response_format(text.take("format"))?;
    }
    request.logprobs = logprobs(&mut fields)?;
    let truncation = fields.take("truncation");
    let limits = ["max_output_tokens"];
    extras::read(&mut fields, &mut request, &limits, 1)?;
    request.truncate |= truncation.is_some_and(|field| field.value == "auto");
    if request.n != 1 {
        return Err(ApiError::field("n", "1: a response has one choice"));
    }
    Ok(ResponsesRequest { generation: request.check_end()?, echo })
}

/// Log-probabilities are requested by `top_logprobs` or by `include`.
fn logprobs(fields: &mut Fields) -> Result<Option<u8>, ApiError> {
    let top = fields.whole("top_logprobs", 0..=20, "a whole number from 0 to 20")?;
    let included = match fields.peek("include") {
        Some(Value::Array(names)) => names.iter().any(|n| n == "message.output_text.logprobs"),
        _ => false,
    };
    let wanted = included || top.is_some_and(|top| top > 0);
    Ok(wanted.then_some(top.unwrap_or(0) as u8))
}

/// Tools with name and parameters at the top level. Hosted and free-form tools, which Codex always sends, are skipped.
fn flat(list: Vec<Field>) -> Result<Vec<Tool>, ApiError> {
    let mut tools = Vec::new();
    for field in list {
        let path = field.path.clone();
        let mut tool = field.object()?;
        match tool.string("type")?.as_deref() {
            // Nested as in Chat Completions; some clients send this form here too.
            Some("function") if tool.peek("function").is_some() => {
                tools.push(tools::declared(tool.need("function")?)?);
            }
            Some("function") => tools.push(function(tool, path, None)?),
            Some("namespace") => {
                let prefix = tool.need("name")?.string()?;
                for field in tool.list("tools")? {
                    let path = field.path.clone();
                    let mut member = field.object()?;
                    if member.string("type")?.is_none_or(|kind| kind == "function") {
                        tools.push(function(member, path, Some(&prefix))?);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(tools)
}

fn function(tool: Fields, path: String, prefix: Option<&str>) -> Result<Tool, ApiError> {
    let mut declared = tools::declared(Field { value: Value::Object(tool.into_map()), path })?;
    if let Some(prefix) = prefix {
        let name = format!("{prefix}.{}", declared.name());
        declared.function.insert("name".to_owned(), Value::String(name));
    }
    Ok(declared)
}

/// The fields that the response echoes, with OpenAI's defaults.
fn echo(fields: &Fields) -> Map<String, Value> {
    let defaults = [
        ("instructions", Value::Null),
        ("max_output_tokens", Value::Null),
        ("parallel_tool_calls", json!(true)),
        ("previous_response_id", Value::Null),
        ("reasoning", Value::Null),
        ("store", Value::Null),
        ("temperature", json!(1)),
        ("text", json!({"format": {"type": "text"}})),
        ("tool_choice", json!("auto")),
        ("tools", json!([])),
        ("top_p", json!(1)),
        ("truncation", Value::Null),
        ("metadata", json!({})),
    ];
    let echoed = |(name, default): (&str, Value)| {
        (name.to_owned(), fields.peek(name).cloned().unwrap_or(default))
    };
    defaults.into_iter().map(echoed).collect()
}
