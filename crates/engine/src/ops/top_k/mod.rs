//! The `k` largest logits and their ids, largest first; of equals the lower id first, NaN last and as minus infinity.

pub(crate) mod cases;
mod gpu;

use super::logit_order::largest_ids;
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Shape, Type, Value},
};

/// The largest of each row of `[t, v]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopK {
    /// Number of results per row, up to [`TopK::MOST`].
    pub k: usize,
}

impl TopK {
    /// Maximum `k`: results must merge in the memory of a workgroup.
    pub const MOST: usize = 128;
}

impl Graph {
    /// Ids and logits of the `k` largest of each row of `[t, v]`: `[k]` of one row, else `[t, k]`.
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
        let most = Self::MOST.min(shape.width());
        assert!((1..=most).contains(&self.k), "top_k: {} of {shape}, at most {most}", self.k);
        let shape: Shape = match shape.rows() {
            1 => [self.k].into(),
            rows => [rows, self.k].into(),
        };
        vec![Type::u32(shape.clone()), Type::f32(shape)]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (logits, mut ids, mut largest) = (call.f32(0), call.out_u32(0), call.out(1));
        let rows = logits.chunks_exact(call.input(0).shape.width());
        let chosen = rows
            .flat_map(|row| largest_ids(row, self.k).into_iter().map(|id| (id, row[id as usize])));
        for (i, (id, logit)) in chosen.enumerate() {
            ids[i] = id;
            largest[i] = if logit.is_nan() { f32::NEG_INFINITY } else { logit };
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }
}
