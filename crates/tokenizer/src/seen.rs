//! Cache of the words already encoded in the current text; most words of a long text are repeats.

use std::ops::Range;

use crate::hash::Seed;

/// The last occurrences of a few thousand words. On a hash collision the newer word replaces the older.
#[derive(Debug)]
pub(crate) struct Seen {
    entries: Vec<Entry>,
}

/// The range of a word in the text and of its ids in the output.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    word: usize,
    ids: usize,
    word_len: u8,
    /// At most one id for each byte of the word.
    ids_len: u8,
}

const ENTRIES: usize = 4096;

/// The shortest text, in bytes, for which the cache pays off.
const WORTHWHILE: usize = 4096;

/// The longest word that is cached, in bytes.
const LONGEST: usize = 64;

impl Seen {
    pub(crate) fn new(text: &str) -> Self {
        let entries = if text.len() < WORTHWHILE { 0 } else { ENTRIES };
        Self { entries: vec![Entry::default(); entries] }
    }

    /// The range of a word's ids in the output, or the slot to insert the word into.
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
