//! Split-KV partials: what attention leaves where the next operation combines it, which saves a dispatch.

use rullama_gguf::DType;

use super::BufferRef;

/// For each token, head and KV split the weighted sum of the values, relative to the largest score of the split; after all of those sums,
/// one vec4 each with that score and the sum of the weights. Splits without a key have nothing. After all that, the LoRA down-projection
/// of each sum, where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitKvPartials {
    /// Heads of a token.
    pub heads: usize,
    /// vec4s of a head.
    pub vec4s: usize,
    /// KV splits: whole tiles of keys, of as many keys as a token sees; the first may be its own key.
    pub splits: usize,
    /// Keys of a tile.
    pub tile: usize,
    /// Whether the token's own key is a split of its own.
    pub own_key: bool,
    /// How many keys a token sees, at most.
    pub window: u32,
    /// Tokens.
    pub tokens: usize,
    /// The LoRA down-projection of the sums.
    pub lora: Option<LoraPartials>,
}

/// The LoRA down-projection beside the linear layer that combines partials: attention multiplies each partial sum with the columns of
/// its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoraPartials {
    /// Which input of the linear layer it is; its first rows are meant.
    pub input: usize,
    /// How its numbers are stored.
    pub dtype: DType,
    /// How many rows, a multiple of four.
    pub rows: usize,
    /// vec4s of a row in memory.
    pub stride: usize,
}

impl SplitKvPartials {
    /// Scratch memory that the dispatches before a linear layer, which use others, do not touch.
    const SCRATCH: usize = 1;

    /// The buffer from the dispatch that computes them to the next operation.
    pub(crate) fn buffer(self) -> BufferRef {
        let lora = self.lora.map_or(0, |lora| self.rows() * lora.rows * 4);
        BufferRef::Scratch(Self::SCRATCH, (self.lora_at() * 16 + lora) as u64)
    }

    /// vec4s before the scores and weights of the splits.
    pub(crate) fn rows_at(self) -> usize {
        self.rows() * self.vec4s
    }

    /// vec4s before the LoRA down-projections.
    pub(crate) fn lora_at(self) -> usize {
        self.rows_at() + self.rows()
    }

    fn rows(self) -> usize {
        self.tokens * self.heads * self.splits
    }
}
