//! Gradient of the router with respect to its logits; the selection itself is constant.
//!
//! With `s` the softmax over the selected experts and `g_j = c[T_j] · dw[t, j]`:
//! `dℓ[t, T_j] = factor · s_j · (g_j − Σ_i s_i g_i)`, and zero for all other experts.

use super::{GRAD_SCALE, gpu, scales, shares};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Op, Type},
};

/// Gradient of [`super::Router`]. Inputs: logits, ids, the weights' gradient and optionally scales.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterGrad {
    /// Factor of the logits.
    pub factor: f32,
}

impl Op for RouterGrad {
    fn name(&self) -> &'static str {
        "router_grad"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let ([logits, ids, dw] | [logits, ids, dw, _]) = inputs else {
            panic!("router_grad takes logits, ids, a gradient and scales")
        };
        for scale in &inputs[GRAD_SCALE..] {
            assert_eq!(scale.shape.len(), logits.shape.width(), "router_grad: scales {scale}");
        }
        assert_eq!(ids.shape, dw.shape, "router_grad: ids {ids} with gradient {dw}");
        assert_eq!(logits.shape.rows(), ids.shape.rows(), "router_grad: {logits} with ids {ids}");
        vec![Type::f32(logits.shape.clone())]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (logits, ids, dw) = (call.f32(0), call.u32(1), call.f32(2));
        let scale = scales(call, GRAD_SCALE);
        let (chosen, mut dlogits) = (call.input(1).shape.width(), call.out(0));
        let rows = logits.chunks_exact(scale.len()).zip(dlogits.chunks_exact_mut(scale.len()));
        for (t, (logits, dlogits)) in rows.enumerate() {
            let slots = t * chosen..(t + 1) * chosen;
            let experts: Vec<usize> = ids[slots.clone()].iter().map(|id| *id as usize).collect();
            let shares = shares(logits, &experts, self.factor);
            let g: Vec<f32> =
                experts.iter().zip(&dw[slots]).map(|(e, dw)| scale[*e] * dw).collect();
            let mean: f32 = shares.iter().zip(&g).map(|(s, g)| s * g).sum();
            dlogits.fill(0.0);
            for (j, expert) in experts.iter().enumerate() {
                dlogits[*expert] = self.factor * shares[j] * (g[j] - mean);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::backward(self, call)
    }
}
