//! Builds one conversation from the messages of any API.

use rullama_chat::{Content, Conversation, Message, Part, Tool};
use serde_json::{Map, Value};

use super::{calls, tools};
use crate::{ApiError, ChatInput, Media, MediaKind, Prefill};

/// Key of a media part that holds its file's index.
const FILE: &str = "media";

/// Messages and files, in the order they are read.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(crate) messages: Vec<Message>,
    files: Vec<Option<Media>>,
}

/// The content of one message.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    parts: Vec<Part>,
}

/// Whether a trailing assistant message is the beginning of the reply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trailing {
    /// The model continues it.
    Prefill,
    /// It is a complete turn.
    Turn,
}

impl Builder {
    /// Adds a file to the content of a message.
    pub(crate) fn media(&mut self, pieces: &mut Pieces, media: Media) {
        let kind = match media.kind {
            MediaKind::Image => "image",
            MediaKind::Audio => "audio",
        };
        let mut rest = Map::new();
        rest.insert(FILE.to_owned(), Value::from(self.files.len()));
        self.files.push(Some(media));
        pieces.parts.push(Part { kind: kind.to_owned(), text: None, rest });
    }

    /// Whether any file was added.
    pub(crate) fn has_media(&self) -> bool {
        !self.files.is_empty()
    }

    /// Adds a system message unless it is empty.
    pub(crate) fn system(&mut self, text: Option<String>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.messages.push(Message::new("system", text));
        }
    }

    /// Checks the conversation as a whole.
    pub(crate) fn finish(
        mut self,
        tools: Vec<Tool>,
        trailing: Trailing,
    ) -> Result<ChatInput, ApiError> {
        tools::check_count(&tools)?;
        calls::match_results(&mut self.messages)?;
        let media = self.media_in_order()?;
        let prefill = if trailing == Trailing::Prefill { self.take_prefill() } else { None };
        let conversation =
            Conversation { messages: self.messages, tools, ..Conversation::default() };
        Ok(ChatInput { conversation, media, prefill })
    }

    /// The files in the order of the messages, which may differ from the order they were read.
    fn media_in_order(&mut self) -> Result<Vec<Media>, ApiError> {
        let mut media = Vec::new();
        for message in &mut self.messages {
            let Content::Parts(parts) = &mut message.content else { continue };
            for part in parts {
                let Some(place) = part.rest.get_mut(FILE) else { continue };
                if !matches!(message.role.as_str(), "user" | "tool") {
                    let role = &message.role;
                    return Err(ApiError::Invalid {
                        message: format!(
                            "images and audio belong in user or tool messages, not in a message of the {role}"
                        ),
                    });
                }
                let index = place.as_u64().and_then(|index| usize::try_from(index).ok());
                let file = index.and_then(|index| self.files.get_mut(index)?.take());
                *place = Value::from(media.len());
                media.extend(file);
            }
        }
        Ok(media)
    }

    fn take_prefill(&mut self) -> Option<Prefill> {
        let last = self
            .messages
            .pop_if(|message| message.role == "assistant" && message.tool_calls.is_empty())?;
        let text = match last.content {
            Content::Text(text) => text,
            Content::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
            Content::None | Content::Other(_) => String::new(),
        };
        let thinking = last.reasoning;
        (!text.is_empty() || thinking.is_some()).then_some(Prefill { thinking, text })
    }
}

impl Pieces {
    /// Adds text, joined to the previous text by `separator`: the template would strip and concatenate the parts.
    pub(crate) fn text(&mut self, text: String, separator: &str) {
        match self.parts.last_mut() {
            Some(Part { text: Some(before), .. }) => {
                before.push_str(separator);
                before.push_str(&text);
            }
            _ => self.parts.push(Part {
                kind: "text".to_owned(),
                text: Some(text),
                rest: Map::new(),
            }),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Plain text if there are no other parts.
    pub(crate) fn into_content(mut self) -> Content {
        match self.parts.as_mut_slice() {
            [] => Content::Text(String::new()),
            [Part { text: Some(text), .. }] => Content::Text(std::mem::take(text)),
            _ => Content::Parts(self.parts),
        }
    }
}
