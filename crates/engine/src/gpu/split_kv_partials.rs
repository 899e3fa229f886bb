//! The partial results of split-KV attention where the operation that reads the heads combines them: one dispatch fewer.

use rullama_gguf::DType;

use super::{GpuCall, Place};

/// For each token, head and KV split the sum of the values, weighted relative to the largest score of the KV split; after all of
/// those sums, one vec4 each with that score and the sum of the weights. KV splits without a key are not written. Last come the
/// products of the sums with LoRA A, where that is fused into attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitKvPartials {
    /// Heads of a token.
    pub heads: usize,
    /// Vec4s of a head.
    pub quads: usize,
    /// KV splits: whole tiles of the keys that a token sees; the first may be the token's own key.
    pub splits: usize,
    /// Keys of a tile.
    pub tile: usize,
    /// Whether the token's own key is a KV split of its own.
    pub apart: bool,
    /// How many keys a token sees, at most.
    pub window: u32,
    /// Tokens.
    pub tokens: usize,
    /// LoRA A, where attention multiplies the partials with it.
    pub met: Option<Met>,
}

/// LoRA A of the matmul that combines the partials: each partial is multiplied with the columns of its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Met {
    /// Its input number; only its first rows are used.
    pub input: usize,
    /// How its numbers are stored.
    pub dtype: DType,
    /// How many rows, a multiple of four.
    pub rows: usize,
    /// Vec4s from one row to the next.
    pub stride: usize,
}

impl SplitKvPartials {
    /// Scratch memory that the dispatches before the matmul do not use.
    const SCRATCH: usize = 1;

    /// The scratch memory that holds them until the next operation.
    pub(crate) fn place(self) -> Place {
        let met = self.met.map_or(0, |met| self.rows() * met.rows * 4);
        Place::Scratch(Self::SCRATCH, (self.met_at() * 16 + met) as u64)
    }

    /// Vec4s before the largest scores and sums of weights.
    pub(crate) fn rows_at(self) -> usize {
        self.rows() * self.quads
    }

    /// Vec4s before the products with LoRA A.
    pub(crate) fn met_at(self) -> usize {
        self.rows_at() + self.rows()
    }

    fn rows(self) -> usize {
        self.tokens * self.heads * self.splits
    }
}

impl GpuCall<'_> {
    /// The partials of result `i`, if the operation that reads it combines them.
    pub(crate) fn result_parts(&self, i: usize) -> Option<SplitKvPartials> {
        let parts = self.op().leaves_parts(self, i)?;
        let reader = self.only_reader(i)?;
        // All operations share scratch memory: the reader must follow at once.
        let takes = |parts| reader.op().takes_parts(&reader, parts);
        if !reader.follows(self) || !takes(parts) {
            return None;
        }
        let met = SplitKvPartials { met: reader.op().met(&reader, parts), ..parts };
        Some(if takes(met) { met } else { parts })
    }

    /// The same for the first input.
    pub(crate) fn input_parts(&self) -> Option<SplitKvPartials> {
        let (maker, i) = self.maker(0)?;
        maker.result_parts(i)
    }
}
