//! The prologue of a fused linear layer.

use crate::{
    graph::{Graph, Value},
    ops::Branch,
};

/// Computes the activations of a fused linear layer: graph values in a model, input indices (`usize`) inside the operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prologue<V = Value> {
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
    /// `h1 = s · (h + rms(a) ⊙ w)`, and if there is a next norm, `rms(h1) ⊙ next`.
    ResidualAdd {
        /// The inputs of `h1`.
        branch: Branch<V>,
        /// Weight of the next norm, `[k]`.
        next: Option<V>,
        /// Added to each mean square before the root.
        eps: f32,
    },
}

impl<V: Copy> Prologue<V> {
    /// Its inputs, in order.
    pub(in crate::ops::matmul) fn input_values(&self) -> Vec<V> {
        match self {
            Self::Rows(x) => vec![*x],
            Self::Norm { h, weight, .. } => vec![*h, *weight],
            Self::ResidualAdd { branch, next, .. } => branch.inputs(*next),
        }
    }

    /// The prologue with its inputs mapped by `name`, in order.
    fn map<W>(&self, mut name: impl FnMut(V) -> W) -> Prologue<W> {
        match *self {
            Self::Rows(x) => Prologue::Rows(name(x)),
            Self::Norm { h, weight, eps } => {
                Prologue::Norm { h: name(h), weight: name(weight), eps }
            }
            Self::ResidualAdd { branch, next, eps } => {
                let (branch, next) = branch.map(next, name);
                Prologue::ResidualAdd { branch, next, eps }
            }
        }
    }
}

impl Prologue {
    /// The prologue with its inputs by index, as the operation stores it.
    pub(in crate::ops::matmul) fn indexed(&self) -> Prologue<usize> {
        let mut indices = 0..;
        self.map(|_| indices.next().expect("the range is unbounded"))
    }

    /// The residual stream `h1`, if the prologue adds to it, and the activations `x`.
    pub(in crate::ops::matmul) fn rows(&self, graph: &mut Graph) -> (Option<Value>, Value) {
        match self {
            Self::Rows(x) => (None, *x),
            Self::Norm { h, weight, eps } => (None, graph.rms_norm(*h, Some(*weight), *eps)),
            Self::ResidualAdd { branch, next: Some(next), eps } => {
                let (h1, x) = graph.add_norm_norm(branch, *next, *eps);
                (Some(h1), x)
            }
            Self::ResidualAdd { branch, next: None, eps } => {
                let h1 = graph.add_norm(branch, *eps);
                (Some(h1), h1)
            }
        }
    }
}

impl Prologue<usize> {
    /// Number of inputs.
    pub(in crate::ops::matmul) fn inputs(&self) -> usize {
        self.input_values().len()
    }

    /// The prologue with graph values as inputs.
    pub(in crate::ops::matmul) fn with(&self, inputs: &[Value]) -> Prologue {
        self.map(|i| inputs[i])
    }

    /// Whether `x` is an input.
    pub(in crate::ops::matmul) fn is_rows(&self) -> bool {
        matches!(self, Self::Rows(_))
    }

    /// Index of the weight of the norm right before the matmul.
    pub(in crate::ops::matmul) fn norm_input(&self) -> Option<usize> {
        match self {
            Self::Rows(_) => None,
            Self::Norm { weight, .. } => Some(*weight),
            Self::ResidualAdd { next, .. } => *next,
        }
    }

    /// The norms' epsilon, and whether the residual stream is scaled.
    pub(in crate::ops::matmul) fn eps_and_scaled(&self) -> (f32, bool) {
        match self {
            Self::Rows(_) => (0.0, false),
            Self::Norm { eps, .. } => (*eps, false),
            Self::ResidualAdd { branch, eps, .. } => (*eps, branch.scale.is_some()),
        }
    }
}
