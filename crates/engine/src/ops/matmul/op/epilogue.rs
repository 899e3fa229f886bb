//! The epilogue of a fused linear layer.

use crate::{
    graph::{Graph, Value},
    ops::Activation,
};

/// Applied to the output `[t, r]` of a fused linear layer: graph values in a model, input indices (`usize`) inside the operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Epilogue<V = Value> {
    /// No epilogue.
    Plain,
    /// `f(a) ⊙ b`, where `a` is the first half of a row and `b` the second: `[t, r/2]`.
    Gated(Activation),
    /// `gelu(y) ⊙ long[:, slice]`.
    GeluMul {
        /// Rows of several slices, `[t, l·r]`.
        long: V,
        /// Index of the slice, in units of the width of `y`.
        slice: usize,
    },
    /// `cap · tanh(y / cap)`.
    Softcap {
        /// Bound of the outputs' magnitude.
        cap: f32,
    },
}

impl<V: Copy> Epilogue<V> {
    /// GeGLU.
    pub const GEGLU: Self = Self::Gated(Activation::Gelu);

    /// Whether an output takes two rows: a gate, and what is multiplied with it.
    pub(in crate::ops::matmul) fn is_gated(&self) -> bool {
        matches!(self, Self::Gated(_))
    }

    /// Its input, where it has one.
    pub(in crate::ops::matmul) fn input(&self) -> Option<V> {
        match self {
            Self::GeluMul { long, .. } => Some(*long),
            Self::Plain | Self::Gated(_) | Self::Softcap { .. } => None,
        }
    }

    /// The epilogue with its input mapped by `name`.
    pub(in crate::ops::matmul) fn map<W>(&self, name: impl Fn(V) -> W) -> Epilogue<W> {
        match *self {
            Self::Plain => Epilogue::Plain,
            Self::Gated(activation) => Epilogue::Gated(activation),
            Self::Softcap { cap } => Epilogue::Softcap { cap },
            Self::GeluMul { long, slice } => Epilogue::GeluMul { long: name(long), slice },
        }
    }
}

impl Epilogue {
    /// The equivalent simpler operations.
    pub(in crate::ops::matmul) fn applied(&self, graph: &mut Graph, y: Value) -> Value {
        match *self {
            Self::Plain => y,
            Self::Gated(activation) => graph.gated_halves(y, activation),
            Self::GeluMul { long, slice } => graph.gelu_mul_slice(y, long, slice),
            Self::Softcap { cap } => graph.softcap(y, cap),
        }
    }
}

impl Epilogue<usize> {
    /// The epilogue with graph values as inputs.
    pub(in crate::ops::matmul) fn with(&self, inputs: &[Value]) -> Epilogue {
        self.map(|i| inputs[i])
    }
}
