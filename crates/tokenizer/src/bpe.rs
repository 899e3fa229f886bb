//! Byte-pair encoding of plain text: cut it into words, encode each, remember those seen before.

use std::ops::Range;

use crate::{chars::Chars, joints::Joints, merges::Merges, seen::Seen, word::Word};

/// Everything needed to encode plain text.
#[derive(Debug)]
pub(crate) struct Bpe {
    /// Normal tokens of one character. A space stands for `▁`.
    pub(crate) chars: Chars,
    pub(crate) merges: Merges,
    pub(crate) joints: Joints,
    /// The token of each byte, the unknown token where there is none.
    pub(crate) bytes: [u32; 256],
}

/// Encodes parts of a text one after the other.
#[derive(Debug)]
pub(crate) struct Encoder<'t> {
    bpe: &'t Bpe,
    text: &'t str,
    word: Word,
    seen: Seen,
    /// The ids so far.
    pub(crate) ids: Vec<u32>,
}

impl<'t> Encoder<'t> {
    pub(crate) fn new(bpe: &'t Bpe, text: &'t str) -> Self {
        Self { bpe, text, word: Word::default(), seen: Seen::new(text), ids: Vec::new() }
    }

    /// Appends the ids of `part` of the text, in which nothing is special.
    pub(crate) fn encode(&mut self, part: Range<usize>) {
        let mut start = part.start;
        let mut chars = self.text[part.clone()].char_indices();
        let Some((_, mut before)) = chars.next() else { return };
        for (offset, c) in chars {
            if !self.bpe.joints.may_join(before, c) {
                let end = part.start + offset;
                self.encode_word(start..end);
                start = end;
            }
            before = c;
        }
        self.encode_word(start..part.end);
    }

    fn encode_word(&mut self, place: Range<usize>) {
        let word = &self.text[place.clone()];
        let ids_before = self.ids.len();
        let slot = match self.seen.find(self.text, word) {
            Ok(ids) => return self.ids.extend_from_within(ids),
            Err(slot) => slot,
        };
        for c in word.chars() {
            match self.bpe.chars.get(c) {
                Some(id) => self.word.push(id),
                None => {
                    self.word.finish(&self.bpe.merges, &mut self.ids);
                    self.push_bytes(c);
                }
            }
        }
        self.word.finish(&self.bpe.merges, &mut self.ids);
        self.seen.insert(slot, place, ids_before..self.ids.len());
    }

    fn push_bytes(&mut self, c: char) {
        let c = if c == ' ' { '▁' } else { c };
        let mut buffer = [0; 4];
        let bytes = c.encode_utf8(&mut buffer).bytes();
        self.ids.extend(bytes.map(|byte| self.bpe.bytes[usize::from(byte)]));
    }
}
