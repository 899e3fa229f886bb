//! `x[t, k] = Σ_r y[t, r] · W[r, k]`: the matmul with a transposed weight, which propagates gradients through `linear`.

pub(crate) mod cases;
mod gpu;

use crate::{
    cpu::{CpuCall, add_scaled},
    gpu::{Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
    threads::for_pieces,
};

/// Tokens for which a row is decoded once.
const TOKENS: usize = 16;

/// Matmul of rows with a transposed weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearT;

impl Graph {
    /// Rows of `y` `[t, r]` times the weight `[r, k]`: `[t, k]`.
    pub fn linear_t(&mut self, y: Value, weight: Value) -> Value {
        self.apply(LinearT, &[y, weight])
    }
}

impl Op for LinearT {
    fn name(&self) -> &'static str {
        "linear_t"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [y, weight] = inputs else { panic!("linear_t takes y and a weight") };
        assert_eq!(y.shape.width(), weight.shape.rows(), "linear_t: {y} with weight {weight}");
        vec![Type::f32([y.shape.rows(), weight.shape.width()])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (y, weight, mut x) = (call.f32(0), call.weight(1), call.out(0));
        let (width, rows) = (weight.shape.width(), weight.shape.rows());
        let (y, weight, operations) = (&*y, &*weight, x.len() as u64 * rows as u64);
        let some = |row: &mut Vec<f32>, piece: usize, x: &mut [f32]| {
            x.fill(0.0);
            for r in 0..rows {
                weight.row(r, row);
                for (t, x) in (piece * TOKENS..).zip(x.chunks_exact_mut(width)) {
                    add_scaled(x, y[t * rows + r], row);
                }
            }
        };
        for_pieces(&mut x, TOKENS * width, operations, || vec![0.0; width], some);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        2 * inputs[0].shape.rows() as u64 * inputs[1].shape.len() as u64
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dx: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        vec![dx[0].map(|dx| graph.linear(dx, node.inputs[1])), None]
    }
}
