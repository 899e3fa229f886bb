//! `y[t, r] = Σ_k W[r, k] · x[t, k]`: the product with a weight, in any block format.

pub(crate) mod cases;
mod choice;
mod gpu;

pub(crate) use choice::Team;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
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
        let (width, rows) = (weight.shape.width(), weight.shape.rows());
        let mut row = vec![0.0; width];
        for r in 0..rows {
            weight.row(r, &mut row);
            for (t, x) in x.chunks_exact(width).enumerate() {
                y[t * rows + r] = x.iter().zip(&row).map(|(x, w)| x * w).sum();
            }
        }
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
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        vec![dy[0].map(|dy| graph.linear_t(dy, node.inputs[1])), None]
    }
}
