//! `POST /api/chat`

use rullama_chat::{Message, ToolCall};

use super::super::conversation::{Builder, Pieces, Trailing};
use super::super::{calls, shared, tools};
use crate::fields::{Field, Fields};
use crate::{ApiError, Dialect, GenerationRequest, Input, Options, media};

/// Parses the body of `POST /api/chat`. Without messages it loads or unloads the model.
pub fn chat(body: &[u8]) -> Result<GenerationRequest, ApiError> {
    let mut fields = Fields::parse(body)?;
    let model = shared::model(&mut fields)?;
    let messages = fields.list("messages")?;
    let tools = tools::nested(fields.list("tools")?)?;
    let input = if messages.is_empty() {
        Input::Load
    } else {
        let mut builder = Builder::default();
        for field in messages {
            let message = message(&mut builder, field)?;
            builder.messages.push(message);
        }
        Input::Chat(builder.finish(tools, Trailing::Prefill)?)
    };
    let mut request = GenerationRequest::new(Dialect::Ollama, model, input);
    common(&mut fields, &mut request)?;
    request.check_end()
}

/// Fields shared by chat and generate.
pub(super) fn common(fields: &mut Fields, request: &mut GenerationRequest) -> Result<(), ApiError> {
    shared::settings(fields, request)?;
    request.options = fields.take("options").map(Options::read).transpose()?.unwrap_or_default();
    request.format = shared::ollama_format(fields.take("format"))?;
    let think = fields.take("think").map(|field| shared::think(&field)).transpose()?;
    shared::Think::apply(think, request);
    request.logprobs = shared::logprobs(fields)?;
    request.debug_render_only = fields.boolean("_debug_render_only")?.unwrap_or(false);
    Ok(())
}

/// One message, also of `/api/create`.
pub(super) fn message(builder: &mut Builder, field: Field) -> Result<Message, ApiError> {
    let mut fields = field.object()?;
    let role = role(&mut fields)?;
    let mut pieces = Pieces::default();
    for image in fields.list("images")? {
        builder.media(&mut pieces, media::from_base64(image)?);
    }
    if let Some(text) = fields.string("content")?
        && (!text.is_empty() || pieces.is_empty())
    {
        pieces.text(text, "");
    }
    let mut tool_calls = Vec::new();
    for field in fields.list("tool_calls")? {
        tool_calls.push(call(field)?);
    }
    Ok(Message {
        role,
        content: pieces.into_content(),
        reasoning: fields.string("thinking")?.filter(|text| !text.is_empty()),
        tool_calls,
        tool_call_id: fields.string("tool_call_id")?.filter(|id| !id.is_empty()),
        name: fields.string("tool_name")?.filter(|name| !name.is_empty()),
        ..Message::default()
    })
}

fn role(fields: &mut Fields) -> Result<String, ApiError> {
    let field = fields.need("role")?;
    let role = field.value.as_str().map(str::to_lowercase);
    match role {
        Some(role) if matches!(role.as_str(), "system" | "user" | "assistant" | "tool") => Ok(role),
        _ => Err(field.wrong("\"system\", \"user\", \"assistant\" or \"tool\"")),
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
