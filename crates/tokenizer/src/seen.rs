//! Words already encoded in the text at hand. Most words of a long text occur before.

use std::ops::Range;

use crate::hash::Seed;

/// Where words were seen last, a few thousand of them. A word with the same hash takes another's place.
#[derive(Debug)]
pub(crate) struct Seen {
    entries: Vec<Entry>,
}

/// A word's place in the text and its ids' place in the output.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    word: usize,
    ids: usize,
    word_len: u8,
    /// At most one id for each byte of the word.
    ids_len: u8,
}

const ENTRIES: usize = 4096;

/// The shortest text that is worth the table.
const WORTHWHILE: usize = 4096;

/// The longest word that is remembered, in bytes.
const LONGEST: usize = 64;

impl Seen {
    pub(crate) fn new(text: &str) -> Self {
        let entries = if text.len() < WORTHWHILE { 0 } else { ENTRIES };
        Self { entries: vec![Entry::default(); entries] }
    }

    /// Where in the output a word's ids are, or the entry it would get.
    #[inline]
    pub(crate) fn find(&self, text: &str, word: &str) -> Result<Range<usize>, Option<usize>> {
        if self.entries.is_empty() || !(2..=LONGEST).contains(&word.len()) {
            return Err(None);
        }
        let slot = Seed::FIXED.bytes(word.as_bytes()) as usize % ENTRIES;
        let entry = &self.entries[slot];
        let known = entry.word..entry.word + usize::from(entry.word_len);
        if text.as_bytes()[known] == *word.as_bytes() {
            Ok(entry.ids..entry.ids + usize::from(entry.ids_len))
        } else {
            Err(Some(slot))
        }
    }

    pub(crate) fn insert(&mut self, slot: Option<usize>, word: Range<usize>, ids: Range<usize>) {
        if let Some(slot) = slot {
            self.entries[slot] = Entry {
                word: word.start,
                ids: ids.start,
                word_len: word.len() as u8,
                ids_len: ids.len() as u8,
            };
        }
    }
}
