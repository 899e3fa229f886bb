//! `y[t, :] = Σ_j w[t, j] · z[t, j, :]`: the weighted sum of a token's expert outputs, in the order of its slots.

mod backward;
pub(crate) mod cases;
mod gpu;

pub use backward::ExpertsCombineGrad;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
};

/// Weighted sum over the experts of each token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpertsCombine;

impl Graph {
    /// Sums `z` `[t, k, d]` over the slots with weights `[t, k]`: `[t, d]`.
    pub fn experts_combine(&mut self, z: Value, weights: Value) -> Value {
        self.apply(ExpertsCombine, &[z, weights])
    }
}

impl Op for ExpertsCombine {
    fn name(&self) -> &'static str {
        "experts_combine"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [z, weights] = inputs else { panic!("experts_combine takes z and weights") };
        let [t, k, d] = *z.shape.dims() else { panic!("experts_combine: {z} is not [t, k, d]") };
        assert_eq!(weights.shape.dims(), [t, k], "experts_combine: {z} with weights {weights}");
        vec![Type::f32([t, d])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (z, weights, mut y) = (call.f32(0), call.f32(1), call.out(0));
        let (k, d) = (call.input(1).shape.width(), call.output(0).shape.width());
        for (t, y) in y.chunks_exact_mut(d).enumerate() {
            for (i, y) in y.iter_mut().enumerate() {
                let slots = t * k..(t + 1) * k;
                *y = slots.map(|slot| weights[slot] * z[slot * d + i]).sum();
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        2 * inputs[0].shape.len() as u64
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let Some(dy) = dy[0] else { return vec![None, None] };
        let flows = graph.apply_all(ExpertsCombineGrad, &[node.inputs[0], node.inputs[1], dy]);
        flows.into_iter().map(Some).collect()
    }
}
