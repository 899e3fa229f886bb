//! `POST /v1/chat/completions`

use rullama_chat::{Content, Message, ToolCall};

use super::super::conversation::{Builder, Trailing};
use super::super::{calls, shared, tools};
use super::{content, extras, format};
use crate::fields::{Field, Fields};
use crate::{ApiError, Dialect, GenerationRequest, Input};

/// Fields that would change the output and are not supported.
const REFUSED: [(&str, &str); 7] = [
    ("functions", "use `tools`"),
    ("function_call", "use `tool_choice`"),
    ("audio", "only text is generated"),
    ("web_search_options", "declare a tool that searches"),
    ("prompt", "send `messages`, or use /v1/completions"),
    ("chat_template", "the model's own template is used"),
    ("structured_outputs", "use `response_format`, `grammar`, `guided_regex` or `guided_choice`"),
];

/// Parses the body of `POST /v1/chat/completions`.
pub fn chat_completions(body: &[u8]) -> Result<GenerationRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let model = shared::model(&mut fields)?;
    extras::refuse(&mut fields, &REFUSED)?;
    text_only(&mut fields)?;
    let tools = tools::nested(fields.list("tools")?)?;
    let messages = fields.list("messages")?;
    if messages.is_empty() {
        return Err(ApiError::field("messages", "a list of at least one message"));
    }
    let mut builder = Builder::default();
    for field in messages {
        let message = message(&mut builder, field)?;
        builder.messages.push(message);
    }
    let choice = tools::choice(fields.take("tool_choice"), &tools)?;
    let input = Input::Chat(builder.finish(tools, Trailing::Prefill)?);
    let mut request = GenerationRequest::new(Dialect::OpenAi, model, input);
    request.tool_choice = choice;
    request.parallel_tool_calls = fields.boolean("parallel_tool_calls")?.unwrap_or(true);
    request.format = format::all_formats(&mut fields)?;
    shared::Think::apply(format::think(&mut fields)?, &mut request);
    request.logprobs = shared::logprobs(&mut fields)?;
    let limits = ["max_completion_tokens", "max_tokens", "n_predict"];
    extras::read(&mut fields, &mut request, &limits, 1)?;
    request.check_end()
}

/// One message, also of llama.cpp's `/apply-template`.
pub(in crate::request) fn message(
    builder: &mut Builder,
    field: Field,
) -> Result<Message, ApiError> {
    let mut fields = field.object()?;
    let role = role(&mut fields)?;
    // Texts of the model are concatenated, those of others are separate lines.
    let separator = if role == "assistant" { "" } else { "\n" };
    let content = fields.take("content");
    let tool_calls: Vec<ToolCall> =
        fields.list("tool_calls")?.into_iter().map(call).collect::<Result<_, _>>()?;
    let content_path = fields.path("content");
    let content = match content {
        None if role != "assistant" => return Err(ApiError::Missing { field: content_path }),
        None => Content::None,
        some => content::read(builder, some, separator)?.into_content(),
    };
    let reasoning = match fields.string("reasoning_content")?.filter(|text| !text.is_empty()) {
        Some(text) => Some(text),
        None => fields.string("reasoning")?.filter(|text| !text.is_empty()),
    };
    let name = fields.string("name")?.filter(|name| !name.is_empty() && role == "tool");
    let tool_call_id = fields.string("tool_call_id")?.filter(|_| role == "tool");
    Ok(Message { role, content, reasoning, tool_calls, name, tool_call_id, ..Message::default() })
}

fn role(fields: &mut Fields) -> Result<String, ApiError> {
    let field = fields.need("role")?;
    match field.value.as_str() {
        Some("system" | "developer") => Ok("system".to_owned()),
        Some(role @ ("user" | "assistant" | "tool")) => Ok(role.to_owned()),
        _ => Err(field.wrong("\"system\", \"developer\", \"user\", \"assistant\" or \"tool\"")),
    }
}

fn call(field: Field) -> Result<ToolCall, ApiError> {
    let mut fields = field.object()?;
    let mut function = fields.need("function")?.object()?;
    Ok(ToolCall {
        id: fields.string("id")?.filter(|id| !id.is_empty()),
        name: function.need("name")?.string()?,
        arguments: calls::arguments(function.take("arguments"))?,
    })
}

fn text_only(fields: &mut Fields) -> Result<(), ApiError> {
    for field in fields.list("modalities")? {
        if field.value != "text" {
            return Err(ApiError::unsupported(field.path, "only text is generated"));
        }
    }
    Ok(())
}
