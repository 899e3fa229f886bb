//! Images and audio in requests: base64, data URLs, and detection of the type by the first bytes.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::GeneralPurpose;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};

use crate::ApiError;
use crate::fields::Field;

/// An image or audio file, as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// Its type.
    pub kind: MediaKind,
    /// The file's bytes.
    pub bytes: Vec<u8>,
}

/// The type of a media file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// PNG, JPEG, GIF or WebP.
    Image,
    /// WAV, MP3, FLAC or Ogg.
    Audio,
}

impl Media {
    /// A file as requests carry it: bare base64.
    pub fn encode(bytes: &[u8]) -> String {
        LENIENT.encode(bytes)
    }
}

impl MediaKind {
    /// Detects the type by the first bytes of a file.
    ///
    /// ```
    /// use rullama_api::MediaKind;
    ///
    /// assert_eq!(MediaKind::of(b"\x89PNG\r\n\x1a\n"), Some(MediaKind::Image));
    /// assert_eq!(MediaKind::of(b"RIFF\x24\0\0\0WAVEfmt "), Some(MediaKind::Audio));
    /// assert_eq!(MediaKind::of(b"hello"), None);
    /// ```
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', ..]
            | [0xff, 0xd8, 0xff, ..]
            | [b'G', b'I', b'F', b'8', ..] => Some(Self::Image),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Image),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some(Self::Audio),
            [b'f', b'L', b'a', b'C', ..]
            | [b'O', b'g', b'g', b'S', ..]
            | [b'I', b'D', b'3', ..] => Some(Self::Audio),
            // A frame of MPEG audio, layer III.
            [0xff, second, ..] if second & 0xe6 == 0xe2 => Some(Self::Audio),
            _ => None,
        }
    }
}

/// Padding is optional: some clients omit it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Decodes bare base64. Line breaks are allowed.
pub(crate) fn from_base64(field: Field) -> Result<Media, ApiError> {
    let path = field.path.clone();
    let text = field.string()?;
    decode(&text, path)
}

/// Decodes `data:TYPE;base64,…`. Other URLs are rejected: this crate fetches nothing.
pub(crate) fn from_data_url(field: Field) -> Result<Media, ApiError> {
    let path = field.path.clone();
    let url = field.string()?;
    let Some(rest) = url.strip_prefix("data:") else {
        return Err(ApiError::unsupported(path, "send the file as a data URL with base64"));
    };
    match rest.split_once(";base64,") {
        Some((kind, data)) if kind.is_empty() || is_media_type(kind) => decode(data, path),
        _ => Err(ApiError::field(path, "a data URL of an image or audio file in base64")),
    }
}

/// Bare base64 or a data URL.
pub(crate) fn from_either(field: Field) -> Result<Media, ApiError> {
    match field.value.as_str() {
        Some(text) if text.starts_with("data:") => from_data_url(field),
        _ => from_base64(field),
    }
}

/// Checks the type of a file.
pub(crate) fn expect(media: Media, kind: MediaKind, path: &str) -> Result<Media, ApiError> {
    if media.kind == kind {
        return Ok(media);
    }
    Err(ApiError::field(
        path,
        match kind {
            MediaKind::Image => "an image, but it is audio",
            MediaKind::Audio => "audio, but it is an image",
        },
    ))
}

/// A file whose type is detected by its first bytes.
pub(crate) fn from_bytes(bytes: Vec<u8>, path: impl Into<String>) -> Result<Media, ApiError> {
    match MediaKind::of(&bytes) {
        Some(kind) => Ok(Media { kind, bytes }),
        None => Err(ApiError::field(
            path,
            "an image (PNG, JPEG, GIF, WebP) or audio (WAV, MP3, FLAC, Ogg)",
        )),
    }
}

fn is_media_type(kind: &str) -> bool {
    kind.starts_with("image/") || kind.starts_with("audio/")
}

fn decode(text: &str, path: String) -> Result<Media, ApiError> {
    let decoded = if text.bytes().any(|byte| byte.is_ascii_whitespace()) {
        let dense: String = text.split_ascii_whitespace().collect();
        LENIENT.decode(dense)
    } else {
        LENIENT.decode(text)
    };
    match decoded {
        Ok(bytes) => from_bytes(bytes, path),
        Err(_) => Err(ApiError::field(path, "base64")),
    }
}
