//! The `k` largest logits and their ids, largest first; of equals the lower id first, NaN last and as minus infinity.

pub(crate) mod cases;
mod gpu;

use super::order::largest_ids;
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Type, Value},
};

/// The largest of `[1, v]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopK {
    /// How many, up to [`TopK::MOST`].
    pub k: usize,
}

impl TopK {
    /// The longest list: what merges in the memory of a workgroup.
    pub const MOST: usize = 128;
}

impl Graph {
    /// Ids `[k]` and logits `[k]` of the `k` largest of `[1, v]`.
    pub fn top_k(&mut self, logits: Value, k: usize) -> (Value, Value) {
        let results = self.apply_all(TopK { k }, &[logits]);
        (results[0], results[1])
    }
}

impl Op for TopK {
    fn name(&self) -> &'static str {
        "top_k"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let shape = &inputs[0].shape;
        assert_eq!(shape.rows(), 1, "top_k takes one row, not {shape}");
        let most = Self::MOST.min(shape.width());
        assert!((1..=most).contains(&self.k), "top_k: {} of {shape}, at most {most}", self.k);
        vec![Type::u32([self.k]), Type::f32([self.k])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (logits, mut ids, mut largest) = (call.f32(0), call.out_u32(0), call.out(1));
        for (i, id) in largest_ids(&logits, self.k).into_iter().enumerate() {
            let logit = logits[id as usize];
            ids[i] = id;
            largest[i] = if logit.is_nan() { f32::NEG_INFINITY } else { logit };
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }
}
