//! Products between limits, as models write them.

use super::{Clipped, ClippedBegin, Stacked};
use crate::{
    graph::{Graph, Value},
    ops::Branch,
};

/// No number is smaller than one or larger than the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The smaller one.
    pub least: f32,
    /// The larger one.
    pub most: f32,
}

impl Limits {
    /// All numbers.
    pub const NONE: Self = Self { least: f32::NEG_INFINITY, most: f32::INFINITY };

    /// `x` between them.
    pub fn clamp(self, graph: &mut Graph, x: Value) -> Value {
        if self == Self::NONE { x } else { graph.clamp(x, self.least, self.most) }
    }

    /// As kernels take them: infinite ones are the largest numbers there are.
    pub(super) fn finite(self) -> [f32; 2] {
        [self.least.max(f32::MIN), self.most.min(f32::MAX)]
    }
}

/// What a product between limits takes.
#[derive(Debug, Clone, Copy)]
pub enum ClippedStart {
    /// These rows, `[t, k]`.
    Rows(Value),
    /// `rms(h) ⊙ weight`.
    Norm {
        /// The residual stream, `[t, k]`.
        h: Value,
        /// Weight of the norm, `[k]`.
        weight: Value,
        /// Added to the mean, inside the root.
        eps: f32,
    },
    /// `h1 = s · (h + rms(a) ⊙ w)` and `rms(h1) ⊙ next`.
    Branch {
        /// What `h1` is made of.
        branch: Branch,
        /// Weight of the next norm, `[k]`.
        next: Value,
        /// Added to each mean, inside the root.
        eps: f32,
    },
    /// `gelu(a) ⊙ b` of the halves of these rows, `[t, 2k]`.
    Geglu(Value),
    /// `gelu(a) ⊙ b` of these rows, `[t, k]` each.
    Gated(Value, Value),
    /// `x ⊙ σ(x)` of these rows, `[t, k]`.
    Silu(Value),
}

impl ClippedStart {
    /// What begins the product, and its inputs.
    fn parts(&self) -> (ClippedBegin, Vec<Value>) {
        match self {
            Self::Rows(x) => (ClippedBegin::Plain, vec![*x]),
            Self::Geglu(x) => (ClippedBegin::Geglu, vec![*x]),
            Self::Gated(a, b) => (ClippedBegin::Gated, vec![*a, *b]),
            Self::Silu(x) => (ClippedBegin::Silu, vec![*x]),
            Self::Norm { h, weight, eps } => (ClippedBegin::Norm { eps: *eps }, vec![*h, *weight]),
            Self::Branch { branch, next, eps } => {
                (ClippedBegin::Added(branch.op(true, *eps)), branch.inputs(Some(*next)))
            }
        }
    }
}

impl Graph {
    /// The product of what `start` makes with the weight `[r, k]`, which is these tensors: `(h1, y)`, where `h1` is the residual stream if
    /// `start` makes a new one.
    pub fn clipped(
        &mut self,
        start: &ClippedStart,
        weight: Value,
        stacked: &[Stacked],
    ) -> (Option<Value>, Value) {
        let (begin, mut inputs) = start.parts();
        inputs.push(weight);
        let op = Clipped { begin, stacked: stacked.to_vec() };
        match self.apply_all(op, &inputs).as_slice() {
            [h1, y] => (Some(*h1), *y),
            results => (None, results[0]),
        }
    }

    /// What `start` makes, without a product: `(h1, x)`.
    pub fn clipped_rows(&mut self, start: &ClippedStart) -> (Option<Value>, Value) {
        let (begin, inputs) = start.parts();
        begin.rows(self, &inputs)
    }
}
