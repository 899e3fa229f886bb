//! `y[t, :] = scale · W[id[t], :]`: rows of a weight by number, in any block format. An id beyond the last row gives zeros.

pub(crate) mod cases;
mod gpu;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Element, Graph, NodeValues, Op, Type, Value},
};

/// Rows of a weight by number, times a constant.
#[derive(Debug, Clone, PartialEq)]
pub struct Embed {
    /// What every number is multiplied by.
    pub scale: f32,
}

impl Graph {
    /// Rows `ids` (u32 `[t]`) of the weight `[v, d]`, times `scale`: `[t, d]`.
    pub fn embed(&mut self, ids: Value, weight: Value, scale: f32) -> Value {
        self.apply(Embed { scale }, &[ids, weight])
    }
}

impl Op for Embed {
    fn name(&self) -> &'static str {
        "embed"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [ids, weight] = inputs else { panic!("embed takes ids and a weight") };
        assert_eq!(ids.element, Element::U32, "embed: {ids} are no ids for weight {weight}");
        vec![Type::f32([ids.shape.len(), weight.shape.width()])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (ids, weight, mut y) = (call.u32(0), call.weight(1), call.out(0));
        let rows = y.chunks_exact_mut(weight.shape.width());
        for (id, y) in ids.iter().zip(rows) {
            match usize::try_from(*id) {
                Ok(id) if id < weight.shape.rows() => weight.row(id, y),
                _ => y.fill(0.0),
            }
            y.iter_mut().for_each(|y| *y *= self.scale);
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }

    fn bytes_read(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let (ids, weight) = (inputs[0], inputs[1]);
        ids.bytes() + weight.bytes_of(ids.shape.len(), weight.shape.rows())
    }

    fn grad(&self, _: &mut Graph, _: &NodeValues, _: &[Option<Value>]) -> Vec<Option<Value>> {
        vec![None, None]
    }
}
