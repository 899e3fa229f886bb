//! Layouts of the activations around a fused linear layer.

use crate::gpu::{Layout, SplitKvPartials};

/// Layouts of the edges of a fused linear layer that are not row-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::ops::matmul) struct EdgeLayouts {
    pub(in crate::ops::matmul) x: Option<Layout>,
    /// x as split-KV partials, which the prologue combines.
    pub(in crate::ops::matmul) partials: Option<SplitKvPartials>,
    pub(in crate::ops::matmul) y: Option<Layout>,
}

impl EdgeLayouts {
    /// Whether x is a quantised hand-off: its producer writes it as int8 hi/lo pairs.
    pub(in crate::ops::matmul) fn reads_int8(self) -> bool {
        self.x.is_some_and(|layout| layout.int8)
    }

    /// Whether the result is a quantised hand-off.
    pub(in crate::ops::matmul) fn writes_int8(self) -> bool {
        self.y.is_some_and(|layout| layout.int8)
    }
}
