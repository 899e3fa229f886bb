//! Gradients of the weighted sum: `dz[t, j, :] = w[t, j] · dy[t, :]` and `dw[t, j] = z[t, j, :] · dy[t, :]`.

use super::gpu;
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Op, Type},
};

/// Gradients of [`super::ExpertsCombine`]. Inputs: `z`, the weights and the sum's gradient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpertsCombineGrad;

impl Op for ExpertsCombineGrad {
    fn name(&self) -> &'static str {
        "experts_combine_grad"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [z, weights, dy] = inputs else {
            panic!("experts_combine_grad takes z, weights and a gradient")
        };
        let wanted = [weights.shape.rows(), z.shape.width()];
        assert_eq!(dy.shape.dims(), wanted, "experts_combine_grad: {z} with gradient {dy}");
        vec![Type::f32(z.shape.clone()), Type::f32(weights.shape.clone())]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (z, weights, dy) = (call.f32(0), call.f32(1), call.f32(2));
        let (mut dz, mut dw) = (call.out(0), call.out(1));
        let (k, d) = (call.input(1).shape.width(), call.input(2).shape.width());
        for (slot, (z, dz)) in z.chunks_exact(d).zip(dz.chunks_exact_mut(d)).enumerate() {
            let dy = &dy[slot / k * d..(slot / k + 1) * d];
            for (dz, dy) in dz.iter_mut().zip(dy) {
                *dz = weights[slot] * dy;
            }
            dw[slot] = z.iter().zip(dy).map(|(z, dy)| z * dy).sum();
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::backward(call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        3 * inputs[0].shape.len() as u64
    }
}
