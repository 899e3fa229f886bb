//! Which rows of a weight a product takes.

use crate::{graph::Value, ops::Routes};

/// Which rows of the weight a product takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// All rows of `[r, k]`.
    All,
    /// For each token those of its experts, of `[experts, r, k]`.
    Experts(Experts),
}

/// A product over experts. Inputs: ids, then the weights of the sum, then order and offsets of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experts {
    /// The results of a token's experts are summed, with weights.
    pub summed: bool,
    /// Slots come sorted by expert.
    pub grouped: bool,
}

impl Taken {
    /// How many inputs it has.
    pub(super) fn inputs(self) -> usize {
        match self {
            Self::All => 0,
            Self::Experts(experts) => {
                1 + usize::from(experts.summed) + 2 * usize::from(experts.grouped)
            }
        }
    }

    /// How much each expert counts, of its inputs.
    pub(super) fn shares(self, inputs: &[Value]) -> Option<Value> {
        matches!(self, Self::Experts(experts) if experts.summed).then(|| inputs[1])
    }
}

impl Experts {
    /// Which experts each token goes to, of its inputs.
    pub(super) fn routes(self, inputs: &[Value]) -> Routes {
        let first = 1 + usize::from(self.summed);
        let groups = self.grouped.then(|| (inputs[first], inputs[first + 1]));
        Routes { ids: inputs[0], groups }
    }
}
