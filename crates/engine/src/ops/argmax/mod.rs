//! The id of the largest logit; the lower id if equal; NaN never wins.

pub(crate) mod cases;
mod gpu;

use super::logit_order::largest_ids;
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Type, Value},
};

/// Id of the largest logit of each row of `[t, v]`. Inputs: the logits, and the state that receives the id, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argmax {
    /// Whether the id is written to a state instead of a result.
    pub into: bool,
}

impl Graph {
    /// The id of the largest logit of each row of `[t, v]`: ids `[t]`.
    pub fn argmax(&mut self, logits: Value) -> Value {
        self.apply(Argmax { into: false }, &[logits])
    }

    /// Writes the id of the largest logit of each row of `[t, v]` into the state `[t]`, from which the next run reads it.
    pub fn argmax_into(&mut self, state: Value, logits: Value) {
        self.apply_all(Argmax { into: true }, &[logits, state]);
    }
}

impl Op for Argmax {
    fn name(&self) -> &'static str {
        "argmax"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let shape = &inputs[0].shape;
        assert!(shape.rows() > 0 && shape.width() > 0, "argmax takes rows, not {shape}");
        if !self.into {
            return vec![Type::u32([shape.rows()])];
        }
        assert_eq!(inputs[1], &Type::u32([shape.rows()]), "argmax: a state for an id of each row");
        vec![]
    }

    fn writes(&self) -> &'static [usize] {
        if self.into { &[1] } else { &[] }
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let logits = call.f32(0);
        let best: Vec<u32> = logits
            .chunks_exact(call.input(0).shape.width())
            .map(|row| largest_ids(row, 1)[0])
            .collect();
        if self.into {
            call.state_u32(1).copy_from_slice(&best);
        } else {
            call.out_u32(0).copy_from_slice(&best);
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }
}
