//! LoRA: `y = base + s · B (A x)`. `A` is the down-projection, `B` the up-projection. Training computes them as two matmuls, whose gradients
//! give those of `x`, `A` and `B`; inference fuses them into neighbouring linear layers ([`LoraForm`](super::LoraForm)).

mod branch;
pub(crate) mod cases;
mod down;
mod plan;
pub(crate) mod slots;
mod two_dispatches;
mod up;
mod up_columns;

pub(super) use branch::BranchLora;
pub(crate) use plan::weight_part;
pub(super) use plan::{LoraPlan, folded_part};
pub use slots::SlotLora;
pub(super) use two_dispatches::two_dispatches;
pub(super) use up::partials;

use super::{Matmul, dense::Form};
use crate::graph::{Graph, Value};

/// A LoRA pair of a frozen matrix.
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
    /// Adds `s · B (A x)` for `x` `[t, in]` to `base` `[t, out]`, the output of the frozen matrix.
    pub fn lora(&mut self, base: Value, x: Value, adapter: &Adapter) -> Value {
        let z = self.matmul_nt(x, adapter.a);
        self.lora_up(base, z, adapter)
    }

    /// Adds `s · B z` to `base` `[t, out]`, for `z = A x` `[t, r]`.
    pub fn lora_up(&mut self, base: Value, z: Value, adapter: &Adapter) -> Value {
        let onto_base = Matmul::new(Form::Nt, adapter.scale);
        self.matmul(onto_base, z, adapter.b, Some(base))
    }
}
