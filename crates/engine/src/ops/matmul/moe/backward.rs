//! Gradient of the matmul with respect to `x`: `dx[t, c] = Σ_j Σ_r W[ids[t, j], r, c] · dy[t, j, r]`, without the sum over `j` if `x` has a row
//! per slot. The weights are frozen.

use super::{Sizes, gpu};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Op, Shape, Step, Type},
};

/// Gradient of [`super::LinearExperts`]. Inputs: the output's gradient, the weight and the ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearExpertsGrad {
    /// The shape of `x`.
    pub shape: Shape,
}

impl Op for LinearExpertsGrad {
    fn name(&self) -> &'static str {
        "linear_experts_grad"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [dy, weight, ids] = inputs else {
            panic!("linear_experts_grad takes a gradient, a weight and ids")
        };
        let (sizes, dx) = (Sizes::new(weight, ids), Type::f32(self.shape.clone()));
        assert_eq!(dy.shape.len(), sizes.slots * sizes.rows, "linear_experts_grad: {dy}");
        sizes.slots_per_column(&dx);
        vec![dx]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (dy, weight, ids, mut dx) = (call.f32(0), call.weight(1), call.u32(2), call.out(0));
        let sizes = Sizes::new(call.input(1), call.input(2));
        let (width, shared) = (sizes.width, sizes.slots_per_column(call.output(0)));
        let live = (call.step.count as usize).saturating_mul(sizes.chosen).min(sizes.slots);
        let mut row = vec![0.0; width];
        dx.fill(0.0);
        for slot in 0..live {
            let dx = &mut dx[slot / shared * width..(slot / shared + 1) * width];
            for r in 0..sizes.rows {
                weight.row(ids[slot] as usize * sizes.rows + r, &mut row);
                let slope = dy[slot * sizes.rows + r];
                dx.iter_mut().zip(&row).for_each(|(dx, w)| *dx += w * slope);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::backward(call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        Sizes::new(inputs[1], inputs[2]).operations()
    }

    fn bytes_read(&self, inputs: &[&Type], step: &Step) -> u64 {
        let all = inputs.iter().map(|ty| ty.bytes()).sum();
        Sizes::new(inputs[1], inputs[2]).bytes_read(all, inputs[1], step)
    }
}
