//! `POST /v1/messages` and `/v1/messages/count_tokens`

use rullama_chat::Tool;
use serde_json::{Map, Value};

use super::super::conversation::{Builder, Trailing};
use super::super::{shared, tools};
use super::blocks;
use crate::fields::{Field, Fields};
use crate::{ApiError, Dialect, Format, GenerationRequest, Input, Options, ToolChoice};

/// Parses the body of `POST /v1/messages`.
pub fn messages(body: &[u8]) -> Result<GenerationRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let limit = fields.take("max_tokens");
    let budget =
        fields.peek("thinking").and_then(|thinking| thinking.get("budget_tokens")?.as_i64());
    let mut request = read(fields)?;
    let limit = limit.ok_or_else(|| ApiError::Missing { field: "max_tokens".to_owned() })?;
    let limit = limit.whole(1..=i64::MAX, "a positive whole number")?;
    if request.think == Some(true) && budget.is_some_and(|budget| budget >= limit) {
        return Err(ApiError::field("thinking.budget_tokens", "less than `max_tokens`"));
    }
    request.options.limit(Some(limit));
    request.check_end()
}

/// Parses the body of `POST /v1/messages/count_tokens`: like `/v1/messages`, without `max_tokens`.
pub fn count_tokens(body: &[u8]) -> Result<GenerationRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    fields.take("max_tokens");
    read(fields)
}

fn read(mut fields: Fields) -> Result<GenerationRequest, ApiError> {
    let model = shared::model(&mut fields)?;
    if fields.peek("mcp_servers").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        return Err(ApiError::unsupported("mcp_servers", "declare the servers' tools in `tools`"));
    }
    let tools = declared(fields.list("tools")?)?;
    let mut builder = Builder::default();
    builder.system(fields.take("system").map(blocks::system).transpose()?);
    let messages = fields.need("messages")?.list()?;
    if messages.is_empty() {
        return Err(ApiError::field("messages", "a list of at least one message"));
    }
    for field in messages {
        blocks::message(&mut builder, field)?;
    }
    let (choice, parallel) = tool_choice(fields.object("tool_choice")?, &tools)?;
    let input = Input::Chat(builder.finish(tools, Trailing::Prefill)?);
    let mut request = GenerationRequest::new(Dialect::Anthropic, model, input);
    request.tool_choice = choice;
    request.parallel_tool_calls = parallel;
    shared::settings(&mut fields, &mut request)?;
    let stop = fields.take("stop_sequences");
    request.options = Options::take(&mut fields)?;
    if let Some(stop) = stop {
        let mut stop = stop.texts()?;
        stop.retain(|text| !text.is_empty());
        request.options.stop = Some(stop);
    }
    think(&mut fields, &mut request)?;
    if let Some(mut output) = fields.object("output_config")? {
        effort(output.take("effort"), &mut request)?;
        request.format = format(output.object("format")?)?;
    } else if let Some(format_field) = fields.object("output_format")? {
        request.format = format(Some(format_field))?;
    }
    Ok(request)
}

/// `thinking`; absent means off, and models without thinking ignore it.
fn think(fields: &mut Fields, request: &mut GenerationRequest) -> Result<(), ApiError> {
    request.think = Some(false);
    request.think_if_capable = true;
    let Some(mut thinking) = fields.object("thinking")? else { return Ok(()) };
    let kind = thinking.need("type")?;
    request.think = match kind.value.as_str() {
        Some("enabled" | "adaptive") => Some(true),
        Some("disabled") => Some(false),
        _ => return Err(kind.wrong("\"enabled\", \"disabled\" or \"adaptive\"")),
    };
    let range = 1..=i64::from(u32::MAX);
    let budget = thinking.whole("budget_tokens", range, "a positive whole number")?;
    request.think_budget = budget.map(|tokens| tokens as u32);
    Ok(())
}

/// `output_config.effort`: how long thoughts may be that have no budget of their own.
fn effort(field: Option<Field>, request: &mut GenerationRequest) -> Result<(), ApiError> {
    let Some(field) = field else { return Ok(()) };
    let think = field.value.as_str().and_then(shared::Think::level);
    let think = think.ok_or_else(|| field.wrong("\"low\", \"medium\", \"high\" or \"max\""))?;
    if request.think == Some(true) {
        request.think_budget = request.think_budget.or(think.budget);
    }
    Ok(())
}

fn format(fields: Option<Fields>) -> Result<Format, ApiError> {
    let Some(mut fields) = fields else { return Ok(Format::Text) };
    let kind = fields.need("type")?;
    match kind.value.as_str() {
        Some("json_schema") => shared::schema(fields.need("schema")?),
        _ => Err(kind.wrong("\"json_schema\"")),
    }
}

/// Tools with a schema; server tools without one are skipped, since nothing here can run them.
fn declared(list: Vec<Field>) -> Result<Vec<Tool>, ApiError> {
    let mut tools = Vec::new();
    for field in list {
        let path = field.path.clone();
        let mut tool = field.object()?;
        let Some(schema) = tool.take("input_schema") else {
            let kind = tool.string("type")?;
            if kind.is_none_or(|kind| kind == "custom") {
                return Err(ApiError::Missing { field: format!("{path}.input_schema") });
            }
            continue;
        };
        let mut function = Map::new();
        function.insert("name".to_owned(), Value::String(tool.need("name")?.string()?));
        if let Some(description) = tool.string("description")? {
            function.insert("description".to_owned(), Value::String(description));
        }
        function.insert("parameters".to_owned(), schema.value);
        tools.push(tools::declared(Field { value: Value::Object(function), path })?);
    }
    Ok(tools)
}

fn tool_choice(fields: Option<Fields>, tools: &[Tool]) -> Result<(ToolChoice, bool), ApiError> {
    let Some(mut fields) = fields else { return Ok((ToolChoice::Auto, true)) };
    let parallel = !fields.boolean("disable_parallel_tool_use")?.unwrap_or(false);
    let kind = fields.need("type")?;
    let choice = match kind.value.as_str() {
        Some("auto") => ToolChoice::Auto,
        Some("none") => ToolChoice::None,
        Some("any") => tools::required(tools, &kind)?,
        Some("tool") => {
            let name = fields.need("name")?;
            let path = name.path.clone();
            ToolChoice::Named(tools::known(name.string()?, tools, &path)?)
        }
        _ => return Err(kind.wrong("\"auto\", \"any\", \"tool\" or \"none\"")),
    };
    Ok((choice, parallel))
}
