//! Byte-pair encoding of plain text: splits it into words, encodes each and caches the words of the current text.

use std::ops::Range;

use crate::{
    byte_alphabet, chars::Chars, joints::Joints, kind::Kind, merges::Merges,
    pre_tokenizer::PreTokenizer, seen::Seen, texts::Texts, word::Word,
};

/// The tables needed to encode plain text.
#[derive(Debug)]
pub(crate) struct Bpe {
    pub(crate) merges: Merges,
    pub(crate) pieces: Pieces,
}

/// The symbols that merging starts from.
#[derive(Debug)]
pub(crate) enum Pieces {
    /// Unicode characters.
    Chars {
        /// Normal tokens of one character; a space is looked up as `▁`.
        chars: Chars,
        joints: Box<Joints>,
        /// The byte-fallback token of each byte; the unknown token where the vocabulary has none.
        bytes: Box<[u32; 256]>,
    },
    /// Bytes.
    Bytes {
        /// The token of each byte. A byte without a token is dropped, as in other implementations.
        bytes: Box<[Option<u32>; 256]>,
        pre_tokenizer: PreTokenizer,
    },
}

/// Encodes ranges of a text one after the other.
#[derive(Debug)]
pub(crate) struct Encoder<'t> {
    bpe: &'t Bpe,
    vocabulary: (&'t Texts, &'t [Kind]),
    text: &'t str,
    word: Word,
    seen: Seen,
    /// The ids so far.
    pub(crate) ids: Vec<u32>,
}

impl<'t> Encoder<'t> {
    pub(crate) fn new(bpe: &'t Bpe, vocabulary: (&'t Texts, &'t [Kind]), text: &'t str) -> Self {
        let (word, seen) = (Word::default(), Seen::new(text));
        Self { bpe, vocabulary, text, word, seen, ids: Vec::new() }
    }

    /// Appends the ids of the range `part` of the text, without looking for special tokens.
    pub(crate) fn encode(&mut self, part: Range<usize>) {
        match &self.bpe.pieces {
            Pieces::Chars { joints, .. } => self.encode_by_joints(part, joints),
            Pieces::Bytes { pre_tokenizer, .. } => {
                let mut start = part.start;
                while start < part.end {
                    let end = start + pre_tokenizer.piece(&self.text[start..part.end]);
                    self.encode_word(start..end);
                    start = end;
                }
            }
        }
    }

    fn encode_by_joints(&mut self, part: Range<usize>, joints: &Joints) {
        let mut start = part.start;
        let mut chars = self.text[part.clone()].char_indices();
        let Some((_, mut before)) = chars.next() else { return };
        for (offset, c) in chars {
            if !joints.may_join(before, c) {
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
        match &self.bpe.pieces {
            Pieces::Chars { chars, bytes, .. } => self.merge_chars(word, chars, bytes),
            Pieces::Bytes { bytes, pre_tokenizer } => {
                match Some(word).filter(|_| pre_tokenizer.whole_pieces).and_then(|w| self.whole(w))
                {
                    Some(id) => self.ids.push(id),
                    None => self.merge_bytes(word, bytes),
                }
            }
        }
        self.seen.insert(slot, place, ids_before..self.ids.len());
    }

    fn merge_chars(&mut self, word: &str, chars: &Chars, bytes: &[u32; 256]) {
        for c in word.chars() {
            match chars.get(c) {
                Some(id) => self.word.push(id),
                None => {
                    self.word.finish(&self.bpe.merges, &mut self.ids);
                    let c = if c == ' ' { '▁' } else { c };
                    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                        self.ids.push(bytes[usize::from(byte)]);
                    }
                }
            }
        }
        self.word.finish(&self.bpe.merges, &mut self.ids);
    }

    fn merge_bytes(&mut self, word: &str, bytes: &[Option<u32>; 256]) {
        for byte in word.bytes() {
            match bytes[usize::from(byte)] {
                Some(id) => self.word.push(id),
                None => self.word.finish(&self.bpe.merges, &mut self.ids),
            }
        }
        self.word.finish(&self.bpe.merges, &mut self.ids);
    }

    /// The normal token whose text is all of `word`.
    fn whole(&self, word: &str) -> Option<u32> {
        let (texts, kinds) = self.vocabulary;
        let text: String = word.bytes().map(|b| byte_alphabet::CHARS[usize::from(b)]).collect();
        texts.id_of(text.as_bytes()).filter(|id| kinds[*id as usize] == Kind::Normal)
    }
}
