//! `y[t, :] = scale · W[id[t], :]`: embedding lookup in a weight of any block format. An id beyond the last row gives zeros.

pub(crate) mod cases;
mod gpu;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Element, Graph, NodeValues, Op, Step, Type, Value},
    threads::for_pieces,
};

/// Rows of a weight by id, times a constant.
#[derive(Debug, Clone, PartialEq)]
pub struct Embed {
    /// Factor of every element.
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
        assert_eq!(ids.element, Element::U32, "embed: {ids} are not ids for weight {weight}");
        vec![Type::f32([ids.shape.len(), weight.shape.width()])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (ids, weight, mut y) = (call.u32(0), call.weight(1), call.out(0));
        let (ids, weight) = (&*ids, &*weight);
        let (operations, width) = (4 * y.len() as u64, weight.shape.width());
        let row = |(): &mut (), token: usize, y: &mut [f32]| {
            match usize::try_from(ids[token]) {
                Ok(id) if id < weight.shape.rows() => weight.row(id, y),
                _ => y.fill(0.0),
            }
            y.iter_mut().for_each(|y| *y *= self.scale);
        };
        for_pieces(&mut y, width, operations, || (), row);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }

    fn bytes_read(&self, inputs: &[&Type], _: &Step) -> u64 {
        let [ids, weight] = inputs else { return 0 };
        let row = weight.bytes() / (weight.shape.rows() as u64).max(1);
        ids.bytes() + row * ids.shape.len() as u64
    }

    fn grad(&self, _: &mut Graph, _: &NodeValues, _: &[Option<Value>]) -> Vec<Option<Value>> {
        vec![None, None]
    }
}
