//! Input items of the Responses API: messages, calls, results and reasoning, merged into turns.

use rullama_chat::{Content, Message, ToolCall};

use super::super::calls;
use super::super::conversation::Builder;
use super::content;
use crate::ApiError;
use crate::fields::{Field, Fields};

/// Reads `input`: a text or a list of items.
pub(super) fn read(builder: &mut Builder, field: Field) -> Result<(), ApiError> {
    if field.value.is_string() {
        builder.messages.push(Message::new("user", field.string()?));
        return Ok(());
    }
    if !field.value.is_array() {
        return Err(field.wrong("a string or a list of items"));
    }
    for field in field.list()? {
        item(builder, field.object()?)?;
    }
    if builder.messages.is_empty() {
        return Err(ApiError::field("input", "a string or a list of at least one item"));
    }
    Ok(())
}

fn item(builder: &mut Builder, mut item: Fields) -> Result<(), ApiError> {
    match item.string("type")?.as_deref() {
        None | Some("message") => message(builder, &mut item),
        Some("function_call") => {
            let call = ToolCall {
                id: Some(item.need("call_id")?.string()?),
                name: item.need("name")?.string()?,
                arguments: calls::arguments(item.take("arguments"))?,
            };
            assistant(builder, |message| {
                message.tool_calls.push(call);
            });
            Ok(())
        }
        Some("function_call_output") => {
            let id = item.need("call_id")?.string()?;
            let output = content::read(builder, Some(item.need("output")?), "\n")?;
            builder.messages.push(Message {
                role: "tool".to_owned(),
                content: output.into_content(),
                tool_call_id: Some(id),
                ..Message::default()
            });
            Ok(())
        }
        Some("reasoning") => reasoning(builder, &mut item),
        Some("item_reference") => Err(ApiError::unsupported(
            item.path("type"),
            "items are not stored; send the whole item",
        )),
        // Items of hosted tools and of later versions of the API.
        Some(_) => Ok(()),
    }
}

fn message(builder: &mut Builder, item: &mut Fields) -> Result<(), ApiError> {
    let field = item.need("role")?;
    let role = match field.value.as_str() {
        Some("system" | "developer") => "system",
        Some("user") => "user",
        Some("assistant") => "assistant",
        _ => return Err(field.wrong("\"system\", \"developer\", \"user\" or \"assistant\"")),
    };
    let separator = if role == "assistant" { "" } else { "\n" };
    let content = content::read(builder, Some(item.need("content")?), separator)?.into_content();
    match (role, content) {
        ("assistant", Content::Text(text)) => {
            assistant(builder, |message| match &mut message.content {
                Content::Text(before) => before.push_str(&text),
                content => *content = Content::Text(text),
            })
        }
        (_, content) => {
            let role = role.to_owned();
            builder.messages.push(Message { role, content, ..Message::default() });
        }
    }
    Ok(())
}

/// Reasoning from this server comes back complete in `encrypted_content`; other reasoning only as summaries.
fn reasoning(builder: &mut Builder, item: &mut Fields) -> Result<(), ApiError> {
    let whole = item.string("encrypted_content")?.filter(|text| !text.is_empty());
    let thought = match whole {
        Some(text) => text,
        None => {
            let mut text = String::new();
            for field in item.list("summary")? {
                text.push_str(&field.object()?.string("text")?.unwrap_or_default());
            }
            text
        }
    };
    if !thought.is_empty() {
        assistant(builder, |message| {
            message.reasoning.get_or_insert_default().push_str(&thought);
        });
    }
    Ok(())
}

/// Changes the assistant's turn; begins one if the last message has another role.
fn assistant(builder: &mut Builder, change: impl FnOnce(&mut Message)) {
    match builder.messages.last_mut() {
        Some(message) if message.role == "assistant" => change(message),
        _ => {
            let mut message = Message { role: "assistant".to_owned(), ..Message::default() };
            change(&mut message);
            builder.messages.push(message);
        }
    }
}
