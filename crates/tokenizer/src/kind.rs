//! What sort of token an id is.

use crate::TokenizerError;

/// The sorts of token, from the numbers of `token_type` and, for bytes, the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    /// User-defined, but mere text: blanks and HTML tags. It is recognised in any text.
    Verbatim,
    Unused,
    Byte(u8),
}

impl Kind {
    /// Reads the type number `value` of token `id`. A byte-level vocabulary has no byte tokens that are called normal.
    pub(crate) fn new(
        id: u32,
        value: i64,
        text: &str,
        byte_level: bool,
    ) -> Result<Self, TokenizerError> {
        let byte = byte_of(text);
        Ok(match value {
            // Some files call byte tokens normal. Text cannot reach them either way, only the byte fallback does.
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

/// Gemma's HTML tags. A list, because markers of chats and tools look the same.
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

/// Whether a user-defined token is text that anyone may write: white space or an HTML tag.
fn is_verbatim(text: &str) -> bool {
    let tag = || {
        let inside = text.strip_prefix('<')?.strip_suffix('>')?;
        TAGS.contains(&inside.strip_prefix('/').unwrap_or(inside)).then_some(())
    };
    let is_blank = |c: char| c.is_whitespace() || c == '▁';
    (!text.is_empty() && text.chars().all(is_blank)) || tag().is_some()
}

/// The byte that `<0xHH>` stands for.
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
    fn blanks_and_tags_are_text() {
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
    fn only_two_upper_case_digits_are_a_byte() {
        assert_eq!(byte_of("<0x00>"), Some(0));
        assert_eq!(byte_of("<0xAF>"), Some(0xAF));
        for text in ["<0xaf>", "<0x+F>", "<0xF>", "<0x0FF>", "0xFF", "<0xFF", "<0x>", "<0x→>", ""]
        {
            assert_eq!(byte_of(text), None, "{text}");
        }
    }
}
