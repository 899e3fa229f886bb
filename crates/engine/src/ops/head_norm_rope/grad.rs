//! The gradient of `head_norm_rope`: `g = rotate⁻¹(dy) · w`, then `dx = ρ · (g − x · ρ² · mean(g · x))` with
//! `ρ = (mean(x²) + eps)^(-1/2)`. Without a norm, `dx = rotate⁻¹(dy)`.

use bytemuck::NoUninit;

use super::{HeadForm, gpu::lanes};
use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Part},
    graph::{Op, Type},
    ops::parts::reduce,
};

static BACKWARD: Kernel =
    Kernel { name: "head_norm_rope/backward", source: include_str!("backward.wgsl") };
static UNROTATED: Part = Part {
    kind: "inverse_rotation",
    name: "inverse_rotation/none",
    source: include_str!("inverse_rotation/none.wgsl"),
};
static ROTATED: Part = Part {
    kind: "inverse_rotation",
    name: "inverse_rotation/rotated",
    source: include_str!("inverse_rotation/rotated.wgsl"),
};

/// Gradient of [`super::HeadNormRope`] with respect to `x`. Inputs: `x`, `dy` and, if heads are rotated, weight and RoPE table.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadNormRopeGrad {
    /// Elements per head.
    pub width: usize,
    /// Norm and pairs of the forward op.
    pub form: HeadForm,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    eps: f32,
    heads: u32,
}

impl Op for HeadNormRopeGrad {
    fn name(&self) -> &'static str {
        "head_norm_rope_grad"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [x, dy, ..] = inputs else { panic!("head_norm_rope_grad takes x and dy") };
        assert_eq!(x.shape.len(), dy.shape.len(), "head_norm_rope_grad: {x} and {dy}");
        vec![Type::f32(x.shape.clone())]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, dy, mut dx, n) = (call.f32(0), call.f32(1), call.out(0), self.width);
        let rotated = (call.inputs() > 2).then(|| (call.decoded(2), call.f32(3)));
        let per_token = call.input(0).shape.width();
        let mut g = vec![0.0; n];
        for start in (0..x.len()).step_by(n) {
            let (x, dx) = (&x[start..start + n], &mut dx[start..start + n]);
            g.copy_from_slice(&dy[start..start + n]);
            if let Some((weight, rope)) = &rotated {
                self.rotate_back(&mut g, weight, &rope[start / per_token * n..][..n]);
            }
            if !self.normed(rotated.is_some()) {
                dx.copy_from_slice(&g);
                continue;
            }
            let mean = |sum: f32| sum / n as f32;
            let rho = 1.0 / (mean(x.iter().map(|x| x * x).sum()) + self.form.eps).sqrt();
            let along = mean(g.iter().zip(x).map(|(g, x)| g * x).sum()) * rho * rho;
            for j in 0..n {
                dx[j] = rho * (g[j] - x[j] * along);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let shape = &call.input(0).shape;
        let heads = shape.width() / self.width;
        let rotated = call.inputs() > 2;
        let dispatch = Dispatch::new(&BACKWARD)
            .part(reduce(call.facts))
            .part(if rotated { &ROTATED } else { &UNROTATED })
            .constant("WIDTH", self.width as u32)
            .constant("HALF", self.width as u32 / 2)
            .constant("WG", lanes(self.width) as u32)
            .constant("PAIR_STRIDE", self.form.stride(self.width, 1) as u32)
            .constant("NORMED", u32::from(self.normed(rotated)))
            .params(&Params { eps: self.form.eps, heads: heads as u32 })
            .read(BufferRef::Input(0))
            .read(BufferRef::Input(1))
            .write(BufferRef::Output(0))
            .grid(heads, shape.rows(), 1);
        vec![if rotated {
            dispatch.read(BufferRef::Input(2)).read(BufferRef::Input(3))
        } else {
            dispatch
        }]
    }
}

impl HeadNormRopeGrad {
    /// Whether the heads have a norm.
    fn normed(&self, rotated: bool) -> bool {
        if rotated { self.form.qk_norm } else { self.form.v_norm }
    }

    /// The gradient of the normed head from that of the rotated one.
    fn rotate_back(&self, g: &mut [f32], weight: &[f32], rope: &[f32]) {
        let stride = self.form.stride(g.len(), 1);
        let weight = |j: usize| if self.form.qk_norm { weight[j] } else { 1.0 };
        for i in 0..g.len() / 2 {
            let first = i / stride * 2 * stride + i % stride;
            let (a, b, cos, sin) = (g[first], g[first + stride], rope[2 * i], rope[2 * i + 1]);
            g[first] = (a * cos + b * sin) * weight(first);
            g[first + stride] = (b * cos - a * sin) * weight(first + stride);
        }
    }
}
