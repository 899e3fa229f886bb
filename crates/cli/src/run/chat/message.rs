//! Messages of people.

use rullama_chat::{Content, Message, Part};
use rullama_runtime::media::MediaKind;
use serde_json::{Map, Value};

use crate::media::MediaFile;

/// A message of text after its images and audio: models were trained on that order.
pub(super) fn of(text: &str, files: &[MediaFile]) -> Message {
    if files.is_empty() {
        return Message::new("user", text);
    }
    let text = Some(text.to_owned()).filter(|text| !text.trim().is_empty());
    let text = text.map(|text| Part { kind: "text".into(), text: Some(text), rest: Map::new() });
    let parts = files.iter().map(part).chain(text).collect();
    Message { role: "user".into(), content: Content::Parts(parts), ..Message::default() }
}

fn part(file: &MediaFile) -> Part {
    let kind = match file.kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
    };
    let path = Value::from(file.path.to_string_lossy());
    Part { kind: kind.into(), text: None, rest: Map::from_iter([("path".to_owned(), path)]) }
}
