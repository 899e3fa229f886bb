//! Message content: a string or parts, in the notations of Chat Completions and Responses.

use super::super::conversation::{Builder, Pieces};
use crate::fields::{Field, Fields};
use crate::{ApiError, MediaKind, media};

/// Reads content into pieces. Texts of one message are joined by `separator`.
pub(super) fn read(
    builder: &mut Builder,
    field: Option<Field>,
    separator: &str,
) -> Result<Pieces, ApiError> {
    let mut pieces = Pieces::default();
    let Some(field) = field else { return Ok(pieces) };
    if field.value.is_string() {
        pieces.text(field.string()?, "");
        return Ok(pieces);
    }
    if !field.value.is_array() {
        return Err(field.wrong("a string or a list of parts"));
    }
    for field in field.list()? {
        if field.value.is_string() {
            pieces.text(field.string()?, separator);
            continue;
        }
        part(builder, &mut pieces, field.object()?, separator)?;
    }
    Ok(pieces)
}

fn part(
    builder: &mut Builder,
    pieces: &mut Pieces,
    mut part: Fields,
    separator: &str,
) -> Result<(), ApiError> {
    let kind = part.need("type")?;
    let path = kind.path.clone();
    match kind.string()?.as_str() {
        "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text" => {
            pieces.text(part.need("text")?.string()?, separator);
        }
        "refusal" => pieces.text(part.need("refusal")?.string()?, separator),
        "image_url" | "input_image" => {
            if part.peek("file_id").is_some() {
                return Err(ApiError::unsupported(
                    part.path("file_id"),
                    "send the image as a data URL",
                ));
            }
            let field = part.need("image_url")?;
            let field = if field.value.is_object() { field.object()?.need("url")? } else { field };
            let path = field.path.clone();
            let image = media::from_data_url(field)?;
            builder.media(pieces, media::expect(image, MediaKind::Image, &path)?);
        }
        "input_audio" => {
            let data = part.need("input_audio")?.object()?.need("data")?;
            let path = data.path.clone();
            let audio = media::from_either(data)?;
            builder.media(pieces, media::expect(audio, MediaKind::Audio, &path)?);
        }
        "file" | "input_file" => {
            return Err(ApiError::unsupported(path, "send the file's text, image or audio"));
        }
        _ => return Err(ApiError::field(path, "a text, image or audio part")),
    }
    Ok(())
}
