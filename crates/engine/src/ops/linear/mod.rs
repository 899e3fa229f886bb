//! `y[t, r] = Σ_k W[r, k] · x[t, k]`: the product with a weight, in any block format.

pub(crate) mod cases;
mod choice;
mod ends;
mod gpu;

pub(crate) use choice::Team;
pub(crate) use ends::Ends;
pub(crate) use gpu::TileProduct;

use crate::{
    cpu::{CpuCall, Meeting, products},
    gpu::{Dispatch, GpuCall, Order, SplitKvPartials},
    graph::{Graph, NodeValues, Op, Type, Value},
    ops::product,
};

/// Product of rows with a weight.
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
        products(&weight, weight.shape.rows(), &[Meeting { first_row: 0, columns }], &mut y);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(call)
    }

    fn wants_order(&self, call: &GpuCall<'_>) -> Option<Order> {
        product::wanted_order(call, product::Taken::All, product::Low::None)
    }

    fn takes_parts(&self, call: &GpuCall<'_>, parts: SplitKvPartials) -> bool {
        product::takes_parts(call, product::Low::None, parts)
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
