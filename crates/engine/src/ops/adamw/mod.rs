//! One step of AdamW: `m = β1 m + (1−β1) g`, `v = β2 v + (1−β2) g²`,
//! `θ = θ − lr · ((m / (1−β1^k)) / (√(v / (1−β2^k)) + ε) + λ θ)`.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Graph, Op, Type, Value},
};

static UPDATE: Kernel = Kernel { name: "adamw/update", source: include_str!("update.wgsl") };

/// Updates three states: parameters and both moments. Inputs: `θ`, `m`, `v`, `g`, settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdamW;

/// The settings of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamWStep {
    /// Learning rate.
    pub rate: f32,
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// AdamW's epsilon.
    pub eps: f32,
    /// Decoupled weight decay, `λ`.
    pub decay: f32,
    /// Factor of the gradient, for clipping by the global norm.
    pub gradient_scale: f32,
    /// Number of the step, from 1.
    pub step: u32,
}

impl AdamWStep {
    /// Elements of the settings input.
    pub const LEN: usize = 8;

    /// The settings input. Powers are computed here in f64: in f32 `1 − β2^k` of the first steps would be inaccurate.
    pub fn values(&self) -> [f32; Self::LEN] {
        let correction =
            |beta: f32| (1.0 - f64::from(beta).powf(f64::from(self.step.max(1)))).recip() as f32;
        [
            self.rate,
            self.beta1,
            self.beta2,
            self.eps,
            self.decay,
            correction(self.beta1),
            correction(self.beta2),
            self.gradient_scale,
        ]
    }
}

/// The values of one update, all of one shape.
#[derive(Debug, Clone, Copy)]
pub struct Trained {
    /// Parameters, a state.
    pub parameters: Value,
    /// First moment, a state that starts at zero.
    pub first: Value,
    /// Second moment, a state that starts at zero.
    pub second: Value,
    /// Gradient of the parameters.
    pub gradient: Value,
}

impl Graph {
    /// Updates the parameters in place; `settings` `[8]` holds [`AdamWStep::values`].
    pub fn adamw(&mut self, trained: &Trained, settings: Value) {
        let Trained { parameters, first, second, gradient } = *trained;
        self.apply_all(AdamW, &[parameters, first, second, gradient, settings]);
    }
}

impl Op for AdamW {
    fn name(&self) -> &'static str {
        "adamw"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        for other in &inputs[1..4] {
            assert_eq!(inputs[0], *other, "adamw: states and gradient must have one type");
        }
        assert_eq!(inputs[4].shape.len(), AdamWStep::LEN, "adamw: settings {}", inputs[4]);
        vec![]
    }

    fn writes(&self) -> &'static [usize] {
        &[0, 1, 2]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (mut theta, mut m, mut v) = (call.state(0), call.state(1), call.state(2));
        let (gradient, settings) = (call.f32(3), call.f32(4));
        let [rate, beta1, beta2, eps, decay, first, second, scale] = settings[..] else {
            panic!("adamw takes {} settings", AdamWStep::LEN)
        };
        for i in 0..theta.len() {
            let g = gradient[i] * scale;
            m[i] = beta1 * m[i] + (1.0 - beta1) * g;
            v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
            let step = m[i] * first / ((v[i] * second).sqrt() + eps);
            theta[i] -= rate * (step + decay * theta[i]);
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let len = call.input(0).shape.len();
        vec![
            Dispatch::new(&UPDATE)
                .params(&Params { len: len as u32 })
                .write(BufferRef::Input(0))
                .write(BufferRef::Input(1))
                .write(BufferRef::Input(2))
                .read(BufferRef::Input(3))
                .read(BufferRef::Input(4))
                .grid_over(len.div_ceil(256)),
        ]
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    len: u32,
}
