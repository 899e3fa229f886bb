//! The id of the largest logit; the lower one of equals; NaN never wins.

pub(crate) mod cases;
mod gpu;

use super::order::key;
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Type, Value},
};

/// Id of the largest of `[1, v]`. Inputs: the logits, and the state where the id goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argmax {
    /// The id goes into a state rather than to a result.
    pub into: bool,
}

impl Graph {
    /// The id of the largest logit of `[1, v]`: ids `[1]`.
    pub fn argmax(&mut self, logits: Value) -> Value {
        self.apply(Argmax { into: false }, &[logits])
    }

    /// Writes the id of the largest logit of `[1, v]` into the state `[1]`, from which the next run reads it.
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
        assert!(shape.rows() == 1 && shape.width() > 0, "argmax takes one row, not {shape}");
        if !self.into {
            return vec![Type::u32([1])];
        }
        assert_eq!(inputs[1], &Type::u32([1]), "argmax: a state for one id");
        vec![]
    }

    fn writes(&self) -> &'static [usize] {
        if self.into { &[1] } else { &[] }
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let logits = call.f32(0);
        let mut best = 0;
        for id in 1..logits.len() {
            if key(logits[id]) > key(logits[best]) {
                best = id;
            }
        }
        let best = u32::try_from(best).expect("a vocabulary has fewer than 2^32 ids");
        if self.into {
            call.state_u32(1)[0] = best;
        } else {
            call.out_u32(0)[0] = best;
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }
}
