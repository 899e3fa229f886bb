//! What attention leaves of its heads where the next operation combines it: one launch less.

use super::{GpuCall, Place};

/// For each token, head and stretch of the keys the sum of the values, weighed relative to the largest score of the stretch; behind all of
/// those sums, one quad each with that score and the sum of the weights. Stretches without a key have no weight and no sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadParts {
    /// Heads of a token.
    pub heads: usize,
    /// Quads of a head.
    pub quads: usize,
    /// Stretches.
    pub splits: usize,
    /// Tokens.
    pub tokens: usize,
}

impl HeadParts {
    /// Scratch memory that the launches in front of a product, which use others, leave alone.
    const SCRATCH: usize = 1;

    /// Where they lie: from the launch that makes them to the next operation.
    pub(crate) fn place(self) -> Place {
        Place::Scratch(Self::SCRATCH, ((self.rows_at() + self.rows()) * 16) as u64)
    }

    /// Quads in front of what is known of stretches.
    pub(crate) fn rows_at(self) -> usize {
        self.rows() * self.quads
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
        (reader.follows(self) && reader.op().takes_parts(&reader, parts)).then_some(parts)
    }

    /// The same for the first input.
    pub(crate) fn input_parts(&self) -> Option<HeadParts> {
        let (maker, i) = self.maker()?;
        maker.result_parts(i)
    }
}
