//! Adapters: `y = base + s · B (A x)`, as two products; their gradients give those of `x`, `A` and `B`.

pub(crate) mod cases;

use super::{Matmul, matmul::Form};
use crate::graph::{Graph, Value};

/// A pair of thin matrices beside a frozen one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adapter {
    /// `A`, `[r, in]`: an input or a state.
    pub a: Value,
    /// `B`, `[out, r]`: an input or a state.
    pub b: Value,
    /// `s`: the user's scale times `α / r`.
    pub scale: f32,
}

impl Graph {
    /// Adds what an adapter makes of `x` `[t, in]` to `base` `[t, out]`, the product with the frozen matrix.
    pub fn lora(&mut self, base: Value, x: Value, adapter: &Adapter) -> Value {
        let z = self.matmul_nt(x, adapter.a);
        let onto_base = Matmul { form: Form::Nt, scale: adapter.scale };
        self.matmul(onto_base, z, adapter.b, Some(base))
    }
}
