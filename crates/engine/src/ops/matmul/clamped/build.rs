//! Graph methods for linear layers with clamps.

use super::{ClampedLinear, ClampedPrologue, Stacked};
use crate::graph::{Graph, Value};

/// A range of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clamp {
    /// Lower bound.
    pub least: f32,
    /// Upper bound.
    pub most: f32,
}

impl Clamp {
    /// No bounds.
    pub const NONE: Self = Self { least: f32::NEG_INFINITY, most: f32::INFINITY };

    /// `x` clamped to the range.
    pub fn clamp(self, graph: &mut Graph, x: Value) -> Value {
        if self == Self::NONE { x } else { graph.clamp(x, self.least, self.most) }
    }

    /// The bounds as kernels take them: infinite ones become the largest floats.
    pub(super) fn finite(self) -> [f32; 2] {
        [self.least.max(f32::MIN), self.most.min(f32::MAX)]
    }
}

impl Graph {
    /// The prologue's activations times the weight `[r, k]`, which consists of the tensors `stacked`: `(h1, y)`, where `h1` is the residual
    /// stream if the prologue adds to it.
    pub fn clamped_linear(
        &mut self,
        prologue: &ClampedPrologue,
        weight: Value,
        stacked: &[Stacked],
    ) -> (Option<Value>, Value) {
        let mut inputs = prologue.input_values();
        inputs.push(weight);
        let op = ClampedLinear { prologue: prologue.indexed(), stacked: stacked.to_vec() };
        match self.apply_all(op, &inputs).as_slice() {
            [h1, y] => (Some(*h1), *y),
            results => (None, results[0]),
        }
    }

    /// Only the prologue: `(h1, x)`.
    pub fn clamped_prologue(&mut self, prologue: &ClampedPrologue) -> (Option<Value>, Value) {
        prologue.rows(self)
    }
}
