//! What attention leaves of its heads where the next operation combines it: one dispatch fewer.

use rullama_gguf::DType;

use super::{GpuCall, Place};

/// For each token, head and KV split the sum of the values, weighed relative to the largest score of the KV split; after all of
/// those sums, one quad each with that score and the sum of the weights. KV splits without a key have nothing. After all that,
/// what an adapter's first factor makes of each sum, where it meets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadParts {
    /// Heads of a token.
    pub heads: usize,
    /// Quads of a head.
    pub quads: usize,
    /// KV splits: whole tiles of so many keys, of as many keys as a token sees; the first may be its own key.
    pub splits: usize,
    /// Keys of a tile.
    pub tile: usize,
    /// Whether the token's own key stands apart.
    pub apart: bool,
    /// How many keys a token sees, at most.
    pub window: u32,
    /// Tokens.
    pub tokens: usize,
    /// The factor that meets them.
    pub met: Option<Met>,
}

/// The first factor of an adapter beside the product that combines parts, of which each part meets the columns of its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Met {
    /// Which input of the product it is; its first rows are meant.
    pub input: usize,
    /// How its numbers are stored.
    pub dtype: DType,
    /// How many rows, a multiple of four.
    pub rows: usize,
    /// Quads of a row in memory.
    pub stride: usize,
}

impl HeadParts {
    /// Scratch memory that the dispatches in front of a product, which use others, leave alone.
    const SCRATCH: usize = 1;

    /// Where they lie: from the dispatch that makes them to the next operation.
    pub(crate) fn place(self) -> Place {
        let met = self.met.map_or(0, |met| self.rows() * met.rows * 4);
        Place::Scratch(Self::SCRATCH, (self.met_at() * 16 + met) as u64)
    }

    /// Quads in front of what is known of KV splits.
    pub(crate) fn rows_at(self) -> usize {
        self.rows() * self.quads
    }

    /// Quads in front of what a factor has made of them.
    pub(crate) fn met_at(self) -> usize {
        self.rows_at() + self.rows()
    }

    fn rows(self) -> usize {
        self.tokens * self.heads * self.splits
    }
}

impl GpuCall<'_> {
    /// What is left of result `i` for the next operation, if that combines it.
    pub(crate) fn result_parts(&self, i: usize) -> Option<HeadParts> {
        let parts = self.op().leaves_parts(self, i)?;
        let reader = self.only_reader(i)?;
        // Scratch memory is everybody's: nobody may come between.
        let takes = |parts| reader.op().takes_parts(&reader, parts);
        if !reader.follows(self) || !takes(parts) {
            return None;
        }
        let met = HeadParts { met: reader.op().met(&reader, parts), ..parts };
        Some(if takes(met) { met } else { parts })
    }

    /// The same for the first input.
    pub(crate) fn input_parts(&self) -> Option<HeadParts> {
        let (maker, i) = self.maker(0)?;
        maker.result_parts(i)
    }
}
