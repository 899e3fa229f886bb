//! What sort of token an id is.

use crate::TokenizerError;

/// The sorts of token, from the numbers of `token_type` and, for bytes, the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte(u8),
}

impl Kind {
    /// Reads the type number `value` of token `id`.
    pub(crate) fn new(id: u32, value: i64, text: &str) -> Result<Self, TokenizerError> {
        let byte = byte_of(text);
        Ok(match value {
            // Some files call byte tokens normal. Text cannot reach them either way, only the byte fallback does.
            1 => byte.map_or(Self::Normal, Self::Byte),
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte(byte.ok_or_else(|| TokenizerError::invalid_byte(id, text))?),
            _ => return Err(TokenizerError::UnknownTokenType { id, value }),
        })
    }
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
    fn only_two_upper_case_digits_are_a_byte() {
        assert_eq!(byte_of("<0x00>"), Some(0));
        assert_eq!(byte_of("<0xAF>"), Some(0xAF));
        for text in ["<0xaf>", "<0x+F>", "<0xF>", "<0x0FF>", "0xFF", "<0xFF", "<0x>", "<0x→>", ""]
        {
            assert_eq!(byte_of(text), None, "{text}");
        }
    }
}
