//! The kind of a token.

use crate::TokenizerError;

/// Token kinds, from `token_type` and, for byte tokens, from the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    /// User-defined but plain text: whitespace and HTML tags. Recognised in any text.
    Verbatim,
    Unused,
    Byte(u8),
}

impl Kind {
    /// Reads the type `value` of token `id`. Byte-level vocabularies have no byte tokens with the type normal.
    pub(crate) fn new(
        id: u32,
        value: i64,
        text: &str,
        byte_level: bool,
    ) -> Result<Self, TokenizerError> {
        let byte = byte_of(text);
        Ok(match value {
            // Some files give byte tokens the type normal. Only the byte fallback produces them either way.
            1 => byte.filter(|_| !byte_level).map_or(Self::Normal, Self::Byte),
            2 => Self::Unknown,
            3 => Self::Control,
            4 if is_verbatim(text) => Self::Verbatim,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte(byte.ok_or_else(|| TokenizerError::invalid_byte(id, text))?),
            _ => return Err(TokenizerError::UnknownTokenType { id, value }),
        })
    }
}

/// Gemma's HTML tags, listed because chat and tool markers have the same form.
const TAGS: [&str; 35] = [
    "table",
    "caption",
    "thead",
    "tbody",
    "tfoot",
    "tr",
    "th",
    "td",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
    "strong",
    "em",
    "b",
    "i",
    "u",
    "s",
    "sub",
    "sup",
    "code",
    "a",
    "html",
    "body",
    "img",
    "span",
    "bbox",
    "ul",
    "li",
    "div",
    "iframe",
    "footer",
];

/// Whether a user-defined token is plain text that users may write: whitespace or an HTML tag.
fn is_verbatim(text: &str) -> bool {
    let tag = || {
        let inside = text.strip_prefix('<')?.strip_suffix('>')?;
        TAGS.contains(&inside.strip_prefix('/').unwrap_or(inside)).then_some(())
    };
    let is_blank = |c: char| c.is_whitespace() || c == '▁';
    (!text.is_empty() && text.chars().all(is_blank)) || tag().is_some()
}

/// The byte of a token text `<0xHH>`.
fn byte_of(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    let upper = |b: u8| b.is_ascii_digit() || (b'A'..=b'F').contains(&b);
    if digits.len() != 2 || !digits.bytes().all(upper) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_and_html_tags_are_text() {
        for text in ["\n", "  ", "▁▁", "\t\t", "<table>", "</h3>", "<s>"] {
            assert_eq!(Kind::new(0, 4, text, false), Ok(Kind::Verbatim), "{text:?}");
        }
        for text in ["", "<think>", "<|tool_call>", "</tool_call>", "<escape>", "<>", "table", "a "]
        {
            assert_eq!(Kind::new(0, 4, text, false), Ok(Kind::UserDefined), "{text:?}");
        }
        assert_eq!(Kind::new(0, 3, "<table>", false), Ok(Kind::Control));
    }

    #[test]
    fn byte_tokens_have_two_upper_case_hex_digits() {
        assert_eq!(byte_of("<0x00>"), Some(0));
        assert_eq!(byte_of("<0xAF>"), Some(0xAF));
        for text in ["<0xaf>", "<0x+F>", "<0xF>", "<0x0FF>", "0xFF", "<0xFF", "<0x>", "<0x→>", ""]
        {
            assert_eq!(byte_of(text), None, "{text}");
        }
    }
}
