//! The texts of all tokens in one allocation, and a hash table from text to id.

use crate::{TokenizerError, hash::Seed};

/// Token texts by id and ids by text.
#[derive(Debug)]
pub(crate) struct Texts {
    slab: String,
    /// End offset of each text in the slab; a text begins at the end of the previous one.
    ends: Vec<u32>,
    seed: Seed,
    /// Open addressing, load factor at most 1/2.
    slots: Vec<Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Upper half of the hash, so that almost no other text is compared.
    tag: u32,
    id: u32,
}

/// Marks an empty slot; greater than any id.
const EMPTY: u32 = u32::MAX;

impl Texts {
    /// Copies `tokens`, whose count fits an id. Empty texts are kept but not found by text.
    pub(crate) fn new(tokens: &[&str]) -> Result<Self, TokenizerError> {
        let bytes = tokens.iter().map(|t| t.len() as u64).sum();
        let too_long = || TokenizerError::TextTooLong { bytes };
        let length = u32::try_from(bytes).map_err(|_| too_long())?;
        let mut slab = String::new();
        slab.try_reserve_exact(length as usize).map_err(|_| too_long())?;
        let mut texts = Self {
            slab,
            ends: Vec::with_capacity(tokens.len()),
            seed: Seed::random(),
            slots: vec![Slot { tag: 0, id: EMPTY }; (tokens.len() * 2).next_power_of_two()],
        };
        for token in tokens {
            texts.push(token)?;
        }
        Ok(texts)
    }

    fn push(&mut self, text: &str) -> Result<(), TokenizerError> {
        let id = self.ends.len() as u32;
        if !text.is_empty() {
            match self.place(text.as_bytes(), self.seed.bytes(text.as_bytes())) {
                Ok(first) => return Err(TokenizerError::duplicate(first, id, text)),
                Err((place, tag)) => self.slots[place] = Slot { tag, id },
            }
        }
        self.slab.push_str(text);
        self.ends.push(self.slab.len() as u32);
        Ok(())
    }

    /// Number of tokens.
    pub(crate) fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The text of a token.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&str> {
        let id = id as usize;
        let end = *self.ends.get(id)? as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        Some(&self.slab[start..end])
    }

    /// The token with this text.
    #[inline]
    pub(crate) fn id_of(&self, text: &[u8]) -> Option<u32> {
        self.place(text, self.seed.bytes(text)).ok()
    }

    /// The tokens with these texts.
    ///
    /// The table is larger than the CPU caches. Each step is done for all texts before the next one, so that cache misses
    /// overlap.
    pub(crate) fn ids_of<const N: usize>(&self, texts: [&str; N]) -> [Option<u32>; N] {
        let hashes = texts.map(|text| self.seed.bytes(text.as_bytes()));
        let guesses = hashes.map(|hash| self.slots[self.first_place(hash)].id);
        let guessed = guesses.map(|id| self.get(id));
        std::array::from_fn(|i| match guessed[i] {
            Some(text) if text == texts[i] => Some(guesses[i]),
            _ => self.place(texts[i].as_bytes(), hashes[i]).ok(),
        })
    }

    #[inline]
    fn first_place(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// The id of a text, or the slot and tag to insert it with.
    #[inline]
    fn place(&self, text: &[u8], hash: u64) -> Result<u32, (usize, u32)> {
        let tag = (hash >> 32) as u32;
        let mut place = self.first_place(hash);
        loop {
            let slot = self.slots[place];
            if slot.id == EMPTY {
                return Err((place, tag));
            }
            if slot.tag == tag && self.get(slot.id).is_some_and(|t| t.as_bytes() == text) {
                return Ok(slot.id);
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }
}
