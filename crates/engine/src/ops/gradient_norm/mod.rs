//! The global norm of all gradients, and the settings of an update that clips it: `g ← g · min(1, limit / ‖g‖)`. Both stay on the device.

pub(crate) mod cases;

use bytemuck::NoUninit;

use super::AdamWStep;
use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Graph, Op, Type, Value},
    ops::parts::reduce,
};

static SQUARES: Kernel =
    Kernel { name: "gradient_norm/squares", source: include_str!("squares.wgsl") };
static TOTAL: Kernel = Kernel { name: "gradient_norm/total", source: include_str!("total.wgsl") };
static CLIP: Kernel = Kernel { name: "gradient_norm/clip", source: include_str!("clip.wgsl") };

/// Index of the gradient's scale in [`AdamWStep::values`].
const SCALE: usize = AdamWStep::LEN - 1;

/// Elements that are worth a workgroup, and the maximum of workgroups.
const PIECE: usize = 1024;
const MAX_GROUPS: usize = 128;

/// `total + Σ x²`, of `x` and a running total: `[1]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SquareSum;

/// Settings of an update whose scale also clips the gradients' norm. Inputs: settings `[8]`, the sum of squares `[1]` and the limit `[1]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClipSettings;

impl Graph {
    /// A total `[1]` plus the squares of all elements of `x`.
    pub fn square_sum(&mut self, total: Value, x: Value) -> Value {
        self.apply(SquareSum, &[total, x])
    }

    /// The settings of [`Self::adamw`] with their scale times `min(1, limit / √squares)`.
    pub fn clip_settings(&mut self, settings: Value, squares: Value, limit: Value) -> Value {
        self.apply(ClipSettings, &[settings, squares, limit])
    }
}

impl Op for SquareSum {
    fn name(&self) -> &'static str {
        "square_sum"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        assert_eq!(inputs[0].shape.len(), 1, "square_sum: a total of {}", inputs[0]);
        vec![Type::f32([1])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let sum: f64 = call.f32(1).iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        call.out(0)[0] = call.f32(0)[0] + sum as f32;
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let len = call.input(1).shape.len();
        let groups = len.div_ceil(PIECE).min(MAX_GROUPS);
        let params = Params { len: len as u32, groups: groups as u32 };
        let dispatch = |kernel| Dispatch::new(kernel).part(reduce(call.facts)).params(&params);
        let parts = BufferRef::Scratch(0, groups as u64 * 4);
        let squares = dispatch(&SQUARES).read(BufferRef::Input(1)).write(parts).grid(groups, 1, 1);
        let total =
            dispatch(&TOTAL).read(BufferRef::Input(0)).read(parts).write(BufferRef::Output(0));
        vec![squares, total]
    }
}

impl Op for ClipSettings {
    fn name(&self) -> &'static str {
        "clip_settings"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let lengths: Vec<usize> = inputs.iter().map(|ty| ty.shape.len()).collect();
        assert_eq!(lengths, [AdamWStep::LEN, 1, 1], "clip_settings: settings, squares and limit");
        vec![inputs[0].clone()]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (settings, squares, limit) = (call.f32(0), call.f32(1)[0], call.f32(2)[0]);
        let mut out = call.out(0);
        out.copy_from_slice(&settings);
        // The norm that the update sees: its settings may scale gradients already.
        let norm = squares.sqrt() * settings[SCALE];
        if norm > limit {
            out[SCALE] *= limit / norm;
        }
    }

    fn gpu(&self, _: &GpuCall<'_>) -> Vec<Dispatch> {
        let params = ClipParams { len: AdamWStep::LEN as u32 };
        let inputs = (0..3).map(BufferRef::Input);
        vec![
            inputs
                .fold(Dispatch::new(&CLIP).params(&params), Dispatch::read)
                .write(BufferRef::Output(0)),
        ]
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    len: u32,
    groups: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct ClipParams {
    len: u32,
}
