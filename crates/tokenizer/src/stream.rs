//! Streaming decoder: a character may begin in one token and end in another.

use crate::{Render, Tokenizer};

/// Decodes ids as they arrive. The concatenated output equals [`Tokenizer::decode`] of all ids, except that no leading
/// space is removed: generated text continues the prompt.
#[derive(Debug, Clone)]
pub struct Stream<'t> {
    tokenizer: &'t Tokenizer,
    render: Render,
    utf8: Utf8Stream,
}

impl<'t> Stream<'t> {
    pub(crate) fn new(tokenizer: &'t Tokenizer, render: Render) -> Self {
        Self { tokenizer, render, utf8: Utf8Stream::default() }
    }

    /// The text that `id` completes; empty while a character is unfinished.
    pub fn push(&mut self, id: u32) -> String {
        self.utf8.push(&self.tokenizer.piece(id, self.render))
    }

    /// The rest at the end: U+FFFD for an incomplete character, else nothing.
    pub fn finish(&mut self) -> String {
        self.utf8.finish()
    }
}

/// Decodes UTF-8 that arrives in chunks, holding back at most three bytes of an incomplete character.
#[derive(Debug, Clone, Default)]
pub struct Utf8Stream {
    held: Vec<u8>,
}

impl Utf8Stream {
    /// The text that `bytes` completes. Invalid bytes become U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let tail = self.held.split_off(unfinished(&self.held));
        take_lossy(std::mem::replace(&mut self.held, tail))
    }

    /// The rest at the end.
    pub fn finish(&mut self) -> String {
        take_lossy(std::mem::take(&mut self.held))
    }

    /// Number of bytes held back.
    pub fn held(&self) -> usize {
        self.held.len()
    }
}

fn take_lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|invalid| String::from_utf8_lossy(invalid.as_bytes()).into_owned())
}

/// The start of an incomplete character at the end; the length if there is none.
fn unfinished(bytes: &[u8]) -> usize {
    for (back, byte) in (1..=3).zip(bytes.iter().rev()) {
        let needed = match byte {
            0x80..=0xBF => continue,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 0,
        };
        return if back < needed { bytes.len() - back } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(portions: &[&[u8]], want: &[&str]) {
        let mut stream = Utf8Stream::default();
        let mut got: Vec<String> = portions.iter().map(|portion| stream.push(portion)).collect();
        got.push(stream.finish());
        assert_eq!(got, want, "{portions:02X?}");
    }

    #[test]
    fn incomplete_characters_are_held_back() {
        check(&[b"a", b"\xF0", b"\x9F", b"\xA6", b"\x99"], &["a", "", "", "", "🦙", ""]);
        check(&[b"\xC3", b"\xA9x\xE2\x96"], &["", "éx", "\u{FFFD}"]);
        check(&[b"\xE2\x96", b"\x81"], &["", "▁", ""]);
    }

    #[test]
    fn invalid_bytes_are_not_held_back() {
        check(&[b"\x80", b"\xFF", b"\xC0"], &["\u{FFFD}", "\u{FFFD}", "\u{FFFD}", ""]);
        check(&[b"\xF0\x9F", b"a"], &["", "\u{FFFD}a", ""]);
        check(&[b"\xF5\x80\x80"], &["\u{FFFD}\u{FFFD}\u{FFFD}", ""]);
        check(&[b"\xC3\xA9\x80"], &["é\u{FFFD}", ""]);
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(
            portions in prop::collection::vec(prop::collection::vec(near_utf8(), 0..5), 0..12),
        ) {
            let mut stream = Utf8Stream::default();
            let mut got = String::new();
            for portion in &portions {
                got += &stream.push(portion);
                prop_assert!(stream.held() <= 3);
            }
            got += &stream.finish();
            let bytes = portions.concat();
            prop_assert_eq!(got, String::from_utf8_lossy(&bytes));
        }
    }

    /// Bytes of complete, incomplete and invalid characters.
    fn near_utf8() -> impl Strategy<Value = u8> {
        prop_oneof![
            any::<u8>(),
            prop::sample::select(
                &[0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC2, 0xE0, 0xED, 0xF0, 0xF4][..]
            ),
        ]
    }
}
