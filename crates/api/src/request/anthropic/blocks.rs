//! Content blocks of Anthropic's messages.

use rullama_chat::{Message, ToolCall};

use super::super::calls;
use super::super::conversation::{Builder, Pieces};
use crate::fields::{Field, Fields};
use crate::{ApiError, MediaKind, media};

/// The system text: a string, or text blocks.
pub(super) fn system(field: Field) -> Result<String, ApiError> {
    if field.value.is_string() {
        return field.string();
    }
    let mut texts = Vec::new();
    for field in field.list()? {
        texts.extend(field.object()?.string("text")?);
    }
    Ok(texts.join("\n\n"))
}

/// One message. Tool results become separate turns before the rest of the message.
pub(super) fn message(builder: &mut Builder, field: Field) -> Result<(), ApiError> {
    let mut fields = field.object()?;
    let role = fields.need("role")?;
    let role = match role.value.as_str() {
        Some(known @ ("user" | "assistant" | "system")) => known.to_owned(),
        _ => return Err(role.wrong("\"user\" or \"assistant\"")),
    };
    let content = fields.need("content")?;
    if content.value.is_string() {
        builder.messages.push(Message::new(role, content.string()?));
        return Ok(());
    }
    if !content.value.is_array() {
        return Err(content.wrong("a string or a list of blocks"));
    }
    let mut turn = Turn { pieces: Pieces::default(), message: Message::default(), results: 0 };
    let separator = if role == "assistant" { "" } else { "\n" };
    for field in content.list()? {
        turn.block(builder, field.object()?, separator)?;
    }
    let Turn { pieces, message, results } = turn;
    let has_more = !pieces.is_empty() || results == 0;
    if has_more {
        builder.messages.push(Message { role, content: pieces.into_content(), ..message });
    }
    Ok(())
}

/// The part of a message read so far.
struct Turn {
    pieces: Pieces,
    message: Message,
    results: usize,
}

impl Turn {
    fn block(
        &mut self,
        builder: &mut Builder,
        mut block: Fields,
        separator: &str,
    ) -> Result<(), ApiError> {
        match block.need("type")?.string()?.as_str() {
            "tool_use" => self.message.tool_calls.push(ToolCall {
                id: Some(block.need("id")?.string()?),
                name: block.need("name")?.string()?,
                arguments: calls::arguments(block.take("input"))?,
            }),
            "tool_result" => {
                let result = tool_result(builder, block)?;
                builder.messages.push(result);
                self.results += 1;
            }
            "thinking" => {
                let text = block.string("thinking")?.unwrap_or_default();
                if !text.is_empty() {
                    self.message.reasoning.get_or_insert_default().push_str(&text);
                }
            }
            kind => content(builder, &mut self.pieces, kind, block, separator)?,
        }
        Ok(())
    }
}

/// Text, an image or a document; other blocks have no representation in a prompt.
fn content(
    builder: &mut Builder,
    pieces: &mut Pieces,
    kind: &str,
    mut block: Fields,
    separator: &str,
) -> Result<(), ApiError> {
    match kind {
        "text" => pieces.text(block.need("text")?.string()?, separator),
        "image" => {
            let mut source = block.need("source")?.object()?;
            let kind = source.need("type")?;
            if kind.value != "base64" {
                return Err(ApiError::unsupported(kind.path, "send the image as base64"));
            }
            let data = source.need("data")?;
            let path = data.path.clone();
            let image = media::from_base64(data)?;
            builder.media(pieces, media::expect(image, MediaKind::Image, &path)?);
        }
        "document" => document(builder, pieces, block, separator)?,
        _ => {}
    }
    Ok(())
}

fn document(
    builder: &mut Builder,
    pieces: &mut Pieces,
    mut block: Fields,
    separator: &str,
) -> Result<(), ApiError> {
    if let Some(title) = block.string("title")?.filter(|title| !title.is_empty()) {
        pieces.text(title, separator);
    }
    let mut source = block.need("source")?.object()?;
    let kind = source.need("type")?;
    match kind.value.as_str() {
        Some("text") => pieces.text(source.need("data")?.string()?, separator),
        Some("content") => {
            let inner = source.need("content")?;
            inline(builder, pieces, inner, separator)?;
        }
        _ => return Err(ApiError::unsupported(kind.path, "send the document as text")),
    }
    if let Some(context) = block.string("context")?.filter(|context| !context.is_empty()) {
        pieces.text(context, separator);
    }
    Ok(())
}

/// A string, or blocks of text, images and documents.
fn inline(
    builder: &mut Builder,
    pieces: &mut Pieces,
    field: Field,
    separator: &str,
) -> Result<(), ApiError> {
    if field.value.is_string() {
        pieces.text(field.string()?, separator);
        return Ok(());
    }
    for field in field.list()? {
        let mut block = field.object()?;
        let kind = block.need("type")?.string()?;
        content(builder, pieces, &kind, block, separator)?;
    }
    Ok(())
}

fn tool_result(builder: &mut Builder, mut block: Fields) -> Result<Message, ApiError> {
    let id = block.need("tool_use_id")?.string()?;
    let mut pieces = Pieces::default();
    // The prompt format has no other field for errors.
    if block.boolean("is_error")?.unwrap_or(false) {
        pieces.text("Error:".to_owned(), "");
    }
    if let Some(field) = block.take("content") {
        inline(builder, &mut pieces, field, "\n")?;
    }
    Ok(Message {
        role: "tool".to_owned(),
        content: pieces.into_content(),
        tool_call_id: Some(id),
        ..Message::default()
    })
}
