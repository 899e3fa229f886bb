//! `y[t, r] = Σ_k W[r, k] · x[t, k]`: a linear layer, with a weight in any block format.

use super::{
    dispatch,
    gemm::{ClampRanges, Gemm},
    op::{FusedLinear, LoraForm, RowSelect},
    reference::{RowBatch, matmul_rows},
    select::Shape,
};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, Edge, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
};

/// A linear layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linear;

impl Graph {
    /// Rows of `x` `[t, k]` times the weight `[r, k]`: `[t, r]`.
    pub fn linear(&mut self, x: Value, weight: Value) -> Value {
        self.apply(Linear, &[x, weight])
    }
}

impl Op for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [x, weight] = inputs else { panic!("linear takes x and a weight") };
        assert_eq!(x.shape.width(), weight.shape.width(), "linear: {x} with weight {weight}");
        vec![Type::f32([x.shape.rows(), weight.shape.rows()])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, weight, mut y) = (call.f32(0), call.weight(1), call.out(0));
        let columns = x.chunks_exact(weight.shape.width()).enumerate().collect();
        let batch = RowBatch { first_row: 0, columns };
        let batches = (&[batch][..], call.is_batch_invariant());
        matmul_rows(&weight, weight.shape.rows(), batches, &mut y);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let plain = FusedLinear::plain(RowSelect::All, LoraForm::None);
        dispatch::gemv(&plain, call).unwrap_or_else(|| gemm(call))
    }

    fn reads(&self, call: &GpuCall<'_>, offered: Edge) -> Edge {
        let plain = FusedLinear::plain(RowSelect::All, LoraForm::None);
        match dispatch::is_gemv(&plain, call) {
            true => dispatch::read_edge(&plain, call, offered),
            false => {
                let slabs = call.slabs(1);
                Shape::of_slab(&call.input(0).shape, &slabs, 0).tile(call.facts).edge(call, &slabs)
            }
        }
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        2 * inputs[0].shape.rows() as u64 * inputs[1].shape.len() as u64
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        vec![dy[0].map(|dy| graph.linear_t(dy, node.inputs[1])), None]
    }
}

/// GEMM: one dispatch per slab, after one that converts x where tiles take it in another form; or with a dequantised weight.
fn gemm(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (x, slabs) = (&call.input(0).shape, call.slabs(1));
    let gemm = Gemm { x, weight: 1, output: 0, clamp: ClampRanges::default() };
    let shape = |slab| Shape::of_slab(x, &slabs, slab);
    let tile = |slab| shape(slab).tile(call.facts);
    if shape(0).is_dequantised(tile(0))
        && let Some(dispatches) = gemm.dequantised(&slabs, false, call)
    {
        return dispatches;
    }
    let (columns, prepared) = tile(0).columns_of(call, &slabs);
    let dispatch = |slab| gemm.dispatch(tile(slab), (&slabs, slab), columns, call);
    prepared.into_iter().chain((0..slabs.rows.len()).map(dispatch)).collect()
}
