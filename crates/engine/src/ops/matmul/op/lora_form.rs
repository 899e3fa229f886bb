//! The forms in which a fused linear layer computes a LoRA pair.

use crate::graph::{Graph, Value};

/// How a fused linear layer computes a LoRA pair, before its epilogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoraForm {
    /// No pair.
    None,
    /// `B (A x)`, of the weights `A` `[r, k]` and `B` `[rows, r]`: a dispatch before computes `A x`.
    Pair,
    /// The same where the preceding dispatch computed `A x` up to the factors of the norms between: see [`FoldedDown`].
    Folded {
        /// The first row of `A` among all folded rows.
        first_row: usize,
    },
    /// `B z`, of `z = A x` `[t, r]` and the weight `B`.
    Precomputed,
    /// `A x`, of the weight `A`, is stored after each output row; the reader of the rows adds `B (A x)`.
    DownRows,
    /// Like [`Self::DownRows`], followed by `P h` for each row, of the rows `h` and the weight `P`: see [`FoldedDown`].
    DownRowsFolded,
    /// `B[s] (A[s] x)`, of the adapter slot `s` of each row: see [`SlotFactors`].
    Slots,
}

/// The down-projection `A` `[r, d]` of a linear layer after a branch and two norms, folded into the dispatch that computes the branch, before
/// the norms are known. The linear layer reads `x = m · (h + n · (w1 ⊙ a)) ⊙ w2`, where `m` and `n` are one scalar per row and the branch is
/// `a = W u`. So `A x = m · (P h + n · Q u)` with `P = A ⊙ w2`, by columns, and `Q = (A ⊙ w2 ⊙ w1) W`: both are matmuls with the inputs of that
/// dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldedDown {
    /// The weight `Q` `[r, k]`, after the rows of the branch's own down-projection, if it has one.
    pub q: Value,
    /// The residual stream `h` `[t, d]`.
    pub h: Value,
    /// The weight `P` `[r, d]`.
    pub p: Value,
}

/// The factors of adapter slots, and which slot each row of a pass has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotFactors {
    /// The down-projections `A`, a weight `[slots · rank, k]`. The rank is a multiple of four.
    pub a: Value,
    /// The up-projections `B`, a weight `[slots · r, rank]`.
    pub b: Value,
    /// The sequences of the pass `u32[t, 4 + entries]`; word [`Sequences::ADAPTER`](crate::ops::Sequences::ADAPTER) is 0 for no adapter, otherwise the slot plus one.
    pub sequences: Value,
}

impl LoraForm {
    /// Number of its inputs, which come last.
    pub(in crate::ops::matmul) fn inputs(self) -> usize {
        match self {
            Self::None => 0,
            Self::DownRows => 1,
            Self::Pair | Self::Folded { .. } | Self::Precomputed => 2,
            Self::DownRowsFolded | Self::Slots => 3,
        }
    }

    /// Whether `A x` is stored after the output rows.
    pub(in crate::ops::matmul) fn has_down_rows(self) -> bool {
        matches!(self, Self::DownRows | Self::DownRowsFolded)
    }

    /// The equivalent simpler operations: `y`, the output for `x`, with the form applied.
    pub(in crate::ops::matmul) fn applied(
        self,
        graph: &mut Graph,
        x: Value,
        y: Value,
        inputs: &[Value],
    ) -> Value {
        if let (Self::Slots, [.., a, b, sequences]) = (self, inputs) {
            let factors = SlotFactors { a: *a, b: *b, sequences: *sequences };
            return graph.slot_lora(y, x, &factors);
        }
        let [.., first, b] = inputs else { return y };
        let z = match self {
            Self::None | Self::Slots => return y,
            Self::Pair | Self::Folded { .. } => graph.linear(x, *first),
            Self::Precomputed => *first,
            Self::DownRows => {
                let z = graph.linear(x, *b);
                return graph.join_columns(&[y, z]);
            }
            Self::DownRowsFolded => {
                let (a, h, p) = (inputs[inputs.len() - 3], *first, *b);
                let (z, residual) = (graph.linear(x, a), graph.linear(h, p));
                return graph.join_columns(&[y, z, residual]);
            }
        };
        let lora = graph.linear(z, *b);
        graph.add(y, lora)
    }
}
