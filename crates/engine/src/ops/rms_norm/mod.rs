//! `y[t, j] = x[t, j] · (mean(x[t, :]²) + eps)^(-1/2) · w[j]`, with or without the weight.

pub(crate) mod cases;
mod gpu;

use crate::{
    cpu::{CpuCall, dot},
    gpu::{Dispatch, Edge, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
    ops::RmsNormGrad,
};

/// Root-mean-square norm of each row.
#[derive(Debug, Clone, PartialEq)]
pub struct RmsNorm {
    /// Added to the mean square before the root.
    pub eps: f32,
}

impl Graph {
    /// Norm of the rows of `x` `[t, n]`, times the weight `[n]` if there is one.
    pub fn rms_norm(&mut self, x: Value, weight: Option<Value>, eps: f32) -> Value {
        let inputs: Vec<Value> = std::iter::once(x).chain(weight).collect();
        self.apply(RmsNorm { eps }, &inputs)
    }
}

impl Op for RmsNorm {
    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        if let [x, weight] = inputs {
            assert_eq!(weight.shape.len(), x.shape.width(), "rms_norm: {x} with weight {weight}");
        }
        vec![Type::f32(inputs[0].shape.clone())]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, mut y) = (call.f32(0), call.out(0));
        let weight = (call.inputs() > 1).then(|| call.decoded(1));
        let n = call.input(0).shape.width();
        for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
            let mean = dot(x, x) / n as f32;
            let scale = 1.0 / (mean + self.eps).sqrt();
            for j in 0..n {
                y[j] = x[j] * scale * weight.as_ref().map_or(1.0, |w| w[j]);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }

    fn stores(&self, _: &GpuCall<'_>, _: usize, preferred: Edge) -> Edge {
        match preferred {
            Edge::F16Columns(_) => preferred,
            _ => Edge::RowMajor,
        }
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let (x, weight) = (node.inputs[0], node.inputs.get(1).copied());
        let norm = RmsNormGrad { width: graph.ty(x).shape.width(), eps: self.eps };
        let dx = dy[0].map(|dy| graph.rms_norm_grad(norm, x, dy, weight));
        // The weight is frozen.
        std::iter::once(dx).chain(weight.map(|_| None)).collect()
    }
}
