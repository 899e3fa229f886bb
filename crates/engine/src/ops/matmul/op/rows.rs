//! The rows of a weight that a fused linear layer multiplies.

use crate::{graph::Value, ops::Routes};

/// Which rows of the weight are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSelect {
    /// All rows of `[r, k]`.
    All,
    /// Those of each token's experts, of `[experts, r, k]`.
    Experts(ExpertRows),
}

/// Rows of each token's experts. Inputs: ids, then optionally the weights of the sum, then order and offsets of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertRows {
    /// Whether the outputs of a token's experts are summed, with weights.
    pub summed: bool,
    /// Whether slots are sorted by expert.
    pub grouped: bool,
}

impl RowSelect {
    /// Number of its inputs.
    pub(in crate::ops::matmul) fn inputs(self) -> usize {
        match self {
            Self::All => 0,
            Self::Experts(experts) => {
                1 + usize::from(experts.summed) + 2 * usize::from(experts.grouped)
            }
        }
    }

    /// Whether the outputs of a token's experts are summed.
    pub(in crate::ops::matmul) fn is_summed(self) -> bool {
        matches!(self, Self::Experts(experts) if experts.summed)
    }

    /// The weights of the sum, from its inputs.
    pub(in crate::ops::matmul) fn shares(self, inputs: &[Value]) -> Option<Value> {
        self.is_summed().then(|| inputs[1])
    }
}

impl ExpertRows {
    /// The experts of each token, from its inputs.
    pub(in crate::ops::matmul) fn routes(self, inputs: &[Value]) -> Routes {
        let first = 1 + usize::from(self.summed);
        let groups = self.grouped.then(|| (inputs[first], inputs[first + 1]));
        Routes { ids: inputs[0], groups }
    }
}
