//! The id of the largest logit; the lower one of equals; NaN never wins.

pub(crate) mod cases;
mod gpu;

use super::order::key;
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Type, Value},
};

/// Id of the largest of `[1, v]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argmax;

impl Graph {
    /// The id of the largest logit of `[1, v]`: ids `[1]`.
    pub fn argmax(&mut self, logits: Value) -> Value {
        self.apply(Argmax, &[logits])
    }
}

impl Op for Argmax {
    fn name(&self) -> &'static str {
        "argmax"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let shape = &inputs[0].shape;
        assert!(shape.rows() == 1 && shape.width() > 0, "argmax takes one row, not {shape}");
        vec![Type::u32([1])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let logits = call.f32(0);
        let mut best = 0;
        for id in 1..logits.len() {
            if key(logits[id]) > key(logits[best]) {
                best = id;
            }
        }
        call.out_u32(0)[0] = u32::try_from(best).expect("a vocabulary has fewer than 2^32 ids");
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(call)
    }
}
