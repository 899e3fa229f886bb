//! `y[t, j, r] = Σ_c W[ids[t, j], r, c] · x[t, c]`: the matmul of each token with the weights of its experts, in any block format.
//!
//! Only the weights of selected experts are read. `x` has one row per token, or one per slot: `x[t, j, c]`. Tokens beyond the step's count give
//! zeros.

mod backward;
pub(crate) mod cases;
mod gpu;

pub use backward::LinearExpertsGrad;

use std::collections::BTreeMap;

use super::reference::{RowBatch, matmul_rows};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, Edge, GpuCall},
    graph::{Graph, NodeValues, Op, Step, Type, Value},
    ops::Routes,
};

/// Matmul of each token with the weights of its experts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearExperts;

impl Graph {
    /// Rows of `x` `[t, c]` (or `[t, k, c]`) times the weights `[experts, r, c]` of their experts: `[t, k, r]`.
    pub fn linear_experts(&mut self, x: Value, routes: &Routes, weight: Value) -> Value {
        let mut inputs = vec![x, weight, routes.ids];
        inputs.extend(routes.groups.into_iter().flat_map(|(order, offsets)| [order, offsets]));
        self.apply(LinearExperts, &inputs)
    }
}

/// Sizes of a matmul over experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Tokens times experts per token.
    pub(crate) slots: usize,
    /// Experts per token.
    pub(crate) chosen: usize,
    /// Number of experts.
    pub(crate) experts: usize,
    /// Rows per expert.
    pub(crate) rows: usize,
    /// Row width.
    pub(crate) width: usize,
}

impl Sizes {
    /// # Panics
    /// If the weight does not have three dimensions, or the ids two.
    pub(crate) fn new(weight: &Type, ids: &Type) -> Self {
        let [experts, rows, width] = *weight.shape.dims() else {
            panic!("linear_experts: {weight} is not [experts, rows, width]")
        };
        let [tokens, chosen] = *ids.shape.dims() else { panic!("linear_experts: ids {ids}") };
        Self { slots: tokens * chosen, chosen, experts, rows, width }
    }

    /// Slots that share a row of an `x` of this type.
    fn slots_per_column(&self, x: &Type) -> usize {
        let shared = x.shape.rows() * self.chosen == self.slots;
        assert!(shared || x.shape.rows() == self.slots, "linear_experts: {x} for {self:?}");
        if shared { self.chosen } else { 1 }
    }

    /// Multiplications and additions.
    pub(crate) fn operations(&self) -> u64 {
        2 * self.slots as u64 * self.rows as u64 * self.width as u64
    }

    /// Bytes read of `all` bytes of inputs, if the slots select as many different experts as possible.
    pub(crate) fn bytes_read(&self, all: u64, weight: &Type, step: &Step) -> u64 {
        let live = self.slots.min((step.count as usize).saturating_mul(self.chosen));
        let weight = weight.bytes();
        all - weight + weight / (self.experts as u64).max(1) * live.min(self.experts) as u64
    }
}

impl Op for LinearExperts {
    fn name(&self) -> &'static str {
        "linear_experts"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [x, weight, ids, groups @ ..] = inputs else {
            panic!("linear_experts takes x, a weight and ids")
        };
        let sizes = Sizes::new(weight, ids);
        assert_eq!(x.shape.width(), sizes.width, "linear_experts: {x} with weight {weight}");
        sizes.slots_per_column(x);
        if let [order, offsets] = groups {
            assert_eq!(order.shape.len(), sizes.slots, "linear_experts: {order} for ids {ids}");
            assert_eq!(offsets.shape.len(), sizes.experts + 2, "linear_experts: {offsets}");
        }
        vec![Type::f32([sizes.slots / sizes.chosen, sizes.chosen, sizes.rows])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, weight, ids, mut y) = (call.f32(0), call.weight(1), call.u32(2), call.out(0));
        let sizes = Sizes::new(call.input(1), call.input(2));
        let (width, shared) = (sizes.width, sizes.slots_per_column(call.input(0)));
        let live = (call.step.count as usize).saturating_mul(sizes.chosen);
        let mut slots: BTreeMap<u32, Vec<(usize, &[f32])>> = BTreeMap::new();
        for (slot, id) in ids.iter().enumerate().take(live) {
            let column = &x[slot / shared * width..][..width];
            slots.entry(*id).or_default().push((slot, column));
        }
        let batch = |(id, columns)| RowBatch { first_row: id as usize * sizes.rows, columns };
        let batches: Vec<_> = slots.into_iter().map(batch).collect();
        let batches = (&batches[..], call.is_batch_invariant());
        matmul_rows(&weight, sizes.rows, batches, &mut y);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(call)
    }

    fn reads(&self, call: &GpuCall<'_>, _: Edge) -> Edge {
        gpu::reads(call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        Sizes::new(inputs[1], inputs[2]).operations()
    }

    fn bytes_read(&self, inputs: &[&Type], step: &Step) -> u64 {
        let all = inputs.iter().map(|ty| ty.bytes()).sum();
        Sizes::new(inputs[1], inputs[2]).bytes_read(all, inputs[1], step)
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let shape = graph.ty(node.inputs[0]).shape.clone();
        let inputs = |dy| [dy, node.inputs[1], node.inputs[2]];
        let dx = dy[0].map(|dy| graph.apply(LinearExpertsGrad { shape }, &inputs(dy)));
        let mut flows = vec![None; node.inputs.len()];
        flows[0] = dx;
        flows
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rullama_gguf::DType;

    use crate::{
        cpu::{CpuPlan, Data, Weight},
        graph::{Graph, Step, Type},
    };

    /// Two experts of two rows, two tokens with two experts each, checked against literals.
    fn check(x: &[f32], per_slot: bool, count: u32, wanted: &[f32]) {
        let mut g = Graph::new();
        let shape = if per_slot { vec![2, 2, 2] } else { vec![2, 2] };
        let (x_in, ids) = (g.input("x", Type::f32(shape)), g.input("ids", Type::u32([2, 2])));
        let routes = g.routes(ids, 2);
        let weight = g.weight("w", Type::weight(DType::F32, [2, 2, 2]));
        let y = g.linear_experts(x_in, &routes, weight);
        let bytes: Vec<u8> = (1..=8u8).flat_map(|n| f32::from(n).to_le_bytes()).collect();
        let weights = |_: &str, ty: &Type| {
            let bytes = Bytes::from(bytes.clone());
            Some(Weight::new(DType::F32, ty.shape.clone(), bytes))
        };
        let plan = CpuPlan::new(g, weights).expect("the weight fits");
        plan.write("x", Data::F32(x.into()));
        plan.write("ids", Data::U32(vec![1, 0, 1, 1]));
        plan.run(&Step { count, ..Step::default() });
        assert_eq!(plan.read(y), wanted);
    }

    #[test]
    fn each_slot_reads_its_expert() {
        let shared = [56.0, 78.0, 12.0, 34.0, 65.0, 87.0, 65.0, 87.0];
        check(&[10.0, 1.0, 1.0, 10.0], false, 2, &shared);
        let slots = [5.0, 7.0, 2.0, 4.0, 11.0, 15.0, 0.0, 0.0];
        check(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0], true, 2, &slots);
    }

    #[test]
    fn tokens_past_the_count_give_zeros() {
        let one = [56.0, 78.0, 12.0, 34.0, 0.0, 0.0, 0.0, 0.0];
        check(&[10.0, 1.0, f32::NAN, 10.0], false, 1, &one);
    }
}
