//! Split-KV partials: attention's unreduced results, which the next operation combines, saving a dispatch.

use rullama_gguf::DType;

use super::BufferRef;

/// For each token, head and KV split the weighted sum of values, relative to the largest score of the split; then, for each of these sums,
/// one vec4 with that score and the sum of weights; then, if there is a LoRA, the down-projection of each sum. Splits without a key have
/// no partial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitKvPartials {
    /// Heads per token.
    pub heads: usize,
    /// vec4s per head.
    pub vec4s: usize,
    /// KV splits per head: whole tiles of the visible keys; the first may be the token's own key.
    pub splits: usize,
    /// Keys per tile.
    pub tile: usize,
    /// Whether the token's own key is a separate split.
    pub own_key: bool,
    /// Maximum visible keys of a token.
    pub window: u32,
    /// Tokens.
    pub tokens: usize,
    /// Whether tokens are of sequences in pages: their partials carry no LoRA down-projection, so that a sequence is computed alike alone
    /// and with others.
    pub paged: bool,
    /// The LoRA down-projection of the sums.
    pub lora: Option<LoraPartials>,
}

/// The LoRA down-projection of the linear layer that combines the partials: attention multiplies each partial sum by the columns of its
/// head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoraPartials {
    /// The linear layer's input that holds A; only its first rows are used.
    pub input: usize,
    /// Element format of A.
    pub dtype: DType,
    /// Number of rows, a multiple of four.
    pub rows: usize,
    /// vec4s per row in memory.
    pub stride: usize,
}

impl SplitKvPartials {
    /// A scratch buffer that the dispatches before a linear layer do not use.
    const SCRATCH: usize = 1;

    /// The buffer that passes the partials to the next operation.
    pub(crate) fn buffer(self) -> BufferRef {
        let lora = self.lora.map_or(0, |lora| self.rows() * lora.rows * 4);
        BufferRef::Scratch(Self::SCRATCH, (self.lora_at() * 16 + lora) as u64)
    }

    /// Offset of the splits' scores and weights, in vec4s.
    pub(crate) fn rows_at(self) -> usize {
        self.rows() * self.vec4s
    }

    /// Offset of the LoRA down-projections, in vec4s.
    pub(crate) fn lora_at(self) -> usize {
        self.rows_at() + self.rows()
    }

    fn rows(self) -> usize {
        self.tokens * self.heads * self.splits
    }
}
