//! The sum of two parallel branches, each after its own norm: `y = rms(a) ⊙ wa + rms(b) ⊙ wb`.

pub(crate) mod cases;
mod gpu;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
    ops::fused,
};

/// The sum of two norms. Inputs: `a`, `wa`, `b`, `wb`.
#[derive(Debug, Clone, PartialEq)]
pub struct NormSum {
    /// Added to each mean square before the root.
    pub eps: f32,
}

impl Graph {
    /// `rms(a) ⊙ wa + rms(b) ⊙ wb` of rows and weights `(a, wa)` and `(b, wb)`.
    pub fn norm_sum(
        &mut self,
        (a, wa): (Value, Value),
        (b, wb): (Value, Value),
        eps: f32,
    ) -> Value {
        self.apply(NormSum { eps }, &[a, wa, b, wb])
    }
}

impl NormSum {
    /// The equivalent simpler operations.
    fn unfused(&self, graph: &mut Graph, inputs: &[Value]) -> Vec<Value> {
        let a = graph.rms_norm(inputs[0], Some(inputs[1]), self.eps);
        let b = graph.rms_norm(inputs[2], Some(inputs[3]), self.eps);
        vec![graph.add(a, b)]
    }
}

impl Op for NormSum {
    fn name(&self) -> &'static str {
        "norm_sum"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [a, wa, b, wb] = inputs else {
            panic!("norm_sum takes two branches with a weight each")
        };
        assert_eq!(a, b, "norm_sum: both branches must have one type");
        for weight in [wa, wb] {
            assert_eq!(weight.shape.len(), a.shape.width(), "norm_sum: {a} with weight {weight}");
        }
        vec![(*a).clone()]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        fused::cpu(call, &|graph, inputs| self.unfused(graph, inputs));
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        fused::grad(graph, node, dy, &|graph, inputs| self.unfused(graph, inputs))
    }
}
