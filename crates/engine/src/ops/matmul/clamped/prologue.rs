//! The prologue of a linear layer with clamps.

use crate::{
    graph::{Graph, Value},
    ops::Branch,
};

/// Computes the activations of a linear layer with clamps: graph values in a model, input indices (`usize`) inside the operation.
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
        /// Added to the mean square before the root.
        eps: f32,
    },
    /// `h1 = s · (h + rms(a) ⊙ w)` and `rms(h1) ⊙ next`.
    ResidualAdd {
        /// The inputs of `h1`.
        branch: Branch<V>,
        /// Weight of the next norm, `[k]`.
        next: V,
        /// Added to each mean square before the root.
        eps: f32,
    },
    /// `gelu(a) ⊙ b`, where each row `[t, 2k]` is a row of `a` followed by a row of `b`.
    Geglu(V),
    /// `gelu(a) ⊙ b` of rows `[t, k]` each.
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

    /// The prologue with its inputs mapped by `name`, in order.
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
    /// The prologue with its inputs by index, as the operation stores it.
    pub(super) fn indexed(&self) -> ClampedPrologue<usize> {
        let mut indices = 0..;
        self.map(|_| indices.next().expect("the range is unbounded"))
    }

    /// The residual stream `h1`, if the prologue adds to it, and the activations `x`.
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
    /// Number of inputs.
    pub(super) fn inputs(&self) -> usize {
        self.input_values().len()
    }

    /// The prologue with graph values as inputs.
    pub(super) fn with(&self, inputs: &[Value]) -> ClampedPrologue {
        self.map(|i| inputs[i])
    }
}
