//! GPT-2's byte alphabet: vocabularies of byte-level BPE write every byte as one printable character.

/// Whether a byte maps to the character of the same code point; the others map to U+0100 and up, in order.
const fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The character of each byte.
pub(crate) static CHARS: [char; 256] = {
    let mut chars = ['\0'; 256];
    let (mut byte, mut other) = (0, 0x100);
    while byte < 256 {
        chars[byte] = if is_printable(byte as u8) {
            byte as u8 as char
        } else {
            other += 1;
            // All characters of the alphabet are below U+0144.
            match char::from_u32(other - 1) {
                Some(c) => c,
                None => unreachable!(),
            }
        };
        byte += 1;
    }
    chars
};

/// The byte that a character of the alphabet encodes.
fn byte_of(c: char) -> Option<u8> {
    match u32::from(c) {
        code @ 0..0x100 => Some(code as u8).filter(|byte| is_printable(*byte)),
        0x100..0x144 => CHARS.iter().position(|other| *other == c).map(|byte| byte as u8),
        _ => None,
    }
}

/// The bytes of a token's text. A character outside the alphabet is kept as its UTF-8 bytes.
pub(crate) fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_maps_to_one_character() {
        let text: String = CHARS.iter().collect();
        assert_eq!(decode(&text), (0..=255).collect::<Vec<u8>>());
        for (byte, c) in [
            (0, 'Ā'),
            (b' ', 'Ġ'),
            (b'\n', 'Ċ'),
            (b'\t', 'ĉ'),
            (0x7F, 'ġ'),
            (0xAD, 'Ń'),
            (b'a', 'a'),
        ] {
            assert_eq!(CHARS[byte as usize], c);
        }
        assert_eq!(decode("Ġa▁é"), [b' ', b'a', 0xE2, 0x96, 0x81, 0xE9]);
    }
}
