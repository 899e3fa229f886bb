//! What computes the activations of a linear layer with clamps.

use crate::{
    graph::{Graph, Value},
    ops::Branch,
};

/// Prologue of a linear layer with clamps: of values where a model writes it, of numbers of inputs (`usize`) inside the operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClampedPrologue<V = Value> {
    /// These rows, `[t, k]`.
    Rows(V),
    /// `rms(h) ⊙ weight`.
    Norm {
        /// The residual stream, `[t, k]`.
        h: V,
        /// Weight of the norm, `[k]`.
        weight: V,
        /// Added to the mean, inside the root.
        eps: f32,
    },
    /// `h1 = s · (h + rms(a) ⊙ w)` and `rms(h1) ⊙ next`.
    ResidualAdd {
        /// What `h1` is computed from.
        branch: Branch<V>,
        /// Weight of the next norm, `[k]`.
        next: V,
        /// Added to each mean, inside the root.
        eps: f32,
    },
    /// `gelu(a) ⊙ b` of the halves of these rows, `[t, 2k]`.
    Geglu(V),
    /// `gelu(a) ⊙ b` of these rows, `[t, k]` each.
    Gated(V, V),
    /// `x ⊙ σ(x)` of these rows, `[t, k]`.
    Silu(V),
}

impl<V: Copy> ClampedPrologue<V> {
    /// Its inputs, in order.
    pub(super) fn input_values(&self) -> Vec<V> {
        match self {
            Self::Rows(x) | Self::Geglu(x) | Self::Silu(x) => vec![*x],
            Self::Gated(a, b) | Self::Norm { h: a, weight: b, .. } => vec![*a, *b],
            Self::ResidualAdd { branch, next, .. } => branch.inputs(Some(*next)),
        }
    }

    /// The same with other names for the inputs, one after the other.
    fn map<W>(&self, mut name: impl FnMut(V) -> W) -> ClampedPrologue<W> {
        match *self {
            Self::Rows(x) => ClampedPrologue::Rows(name(x)),
            Self::Geglu(x) => ClampedPrologue::Geglu(name(x)),
            Self::Silu(x) => ClampedPrologue::Silu(name(x)),
            Self::Gated(a, b) => ClampedPrologue::Gated(name(a), name(b)),
            Self::Norm { h, weight, eps } => {
                ClampedPrologue::Norm { h: name(h), weight: name(weight), eps }
            }
            Self::ResidualAdd { branch, next, eps } => {
                let (branch, next) = branch.map(Some(next), name);
                let next = next.expect("the next norm is mapped with the branch");
                ClampedPrologue::ResidualAdd { branch, next, eps }
            }
        }
    }
}

impl ClampedPrologue {
    /// As the operation keeps it: inputs by their numbers.
    pub(super) fn numbered(&self) -> ClampedPrologue<usize> {
        let mut numbers = 0..;
        self.map(|_| numbers.next().expect("numbers do not end"))
    }

    /// The residual stream `h1`, where the prologue adds to it, and the activations `x`.
    pub(super) fn rows(&self, graph: &mut Graph) -> (Option<Value>, Value) {
        match self {
            Self::Rows(x) => (None, *x),
            Self::Norm { h, weight, eps } => (None, graph.rms_norm(*h, Some(*weight), *eps)),
            Self::Geglu(x) => (None, graph.geglu_halves(*x)),
            Self::Gated(a, b) => (None, graph.geglu(*a, *b)),
            Self::Silu(x) => (None, graph.silu(*x)),
            Self::ResidualAdd { branch, next, eps } => {
                let (h1, x) = graph.add_norm_norm(branch, *next, *eps);
                (Some(h1), x)
            }
        }
    }
}

impl ClampedPrologue<usize> {
    /// How many inputs it has.
    pub(super) fn inputs(&self) -> usize {
        self.input_values().len()
    }

    /// The same of a graph's values.
    pub(super) fn with(&self, inputs: &[Value]) -> ClampedPrologue {
        self.map(|i| inputs[i])
    }
}
