//! Gradient of the root-mean-square norm: with `ρ = (mean(x²) + eps)^(-1/2)` and `g = dy ⊙ w`,
//! `dx = ρ · (g − x · ρ² · mean(g ⊙ x))`. The weight is frozen. After the weight, a base may follow, to which `dx` is added.

pub(crate) mod cases;
mod gpu;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Type, Value},
};

/// Gradient of a norm over groups of `width` elements.
#[derive(Debug, Clone, PartialEq)]
pub struct RmsNormGrad {
    /// Elements of a norm: a row, or a slice of it.
    pub width: usize,
    /// Added to the mean square before the root.
    pub eps: f32,
}

impl Graph {
    /// The gradient of `x` from that of its norm, `dy`; both `[t, n]`, the weight `[width]`.
    pub fn rms_norm_grad(
        &mut self,
        norm: RmsNormGrad,
        x: Value,
        dy: Value,
        weight: Option<Value>,
    ) -> Value {
        let inputs: Vec<Value> = [x, dy].into_iter().chain(weight).collect();
        self.apply(norm, &inputs)
    }
}

impl Op for RmsNormGrad {
    fn name(&self) -> &'static str {
        "rms_norm_grad"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let (x, dy) = (inputs[0], inputs[1]);
        assert_eq!(x, dy, "rms_norm_grad: both sides must have one type");
        let fits = x.shape.width().is_multiple_of(self.width);
        assert!(fits, "rms_norm_grad: {x} in groups of {}", self.width);
        if let Some(weight) = inputs.get(2) {
            assert_eq!(weight.shape.len(), self.width, "rms_norm_grad: weight {weight}");
        }
        if let Some(base) = inputs.get(3) {
            assert_eq!(*base, x, "rms_norm_grad: base and result must have one type");
        }
        vec![x.clone()]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, dy, mut dx) = (call.f32(0), call.f32(1), call.out(0));
        let weight = if call.inputs() > 2 { call.decoded(2) } else { vec![1.0; self.width] };
        match call.inputs() {
            0..=3 => dx.fill(0.0),
            _ => dx.copy_from_slice(&call.f32(3)),
        }
        let n = self.width as f32;
        for (row, dx) in dx.chunks_exact_mut(self.width).enumerate() {
            let x = &x[row * self.width..][..self.width];
            let g: Vec<f32> =
                dy[row * self.width..].iter().zip(&weight).map(|(dy, w)| dy * w).collect();
            let mean_square = x.iter().map(|x| x * x).sum::<f32>() / n;
            let mean_product = x.iter().zip(&g).map(|(x, g)| x * g).sum::<f32>() / n;
            let rho = 1.0 / (mean_square + self.eps).sqrt();
            for j in 0..self.width {
                dx[j] += rho * (g[j] - x[j] * rho * rho * mean_product);
            }
        }
    }

    fn takes_base(&self, inputs: usize) -> bool {
        // The third input is the weight.
        inputs == 3
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }
}
