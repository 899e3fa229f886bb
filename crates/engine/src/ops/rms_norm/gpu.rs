//! One workgroup per row.

use bytemuck::NoUninit;

use super::RmsNorm;
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Part, Place},
    ops::{add_norm::gpu::lanes, parts::reduce},
};

static FORWARD: Kernel = Kernel { name: "rms_norm/forward", source: include_str!("forward.wgsl") };
static WEIGHTED: Part =
    Part { kind: "weight", name: "weighted", source: include_str!("weighted.wgsl") };
static PLAIN: Part = Part { kind: "weight", name: "plain", source: include_str!("plain.wgsl") };

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    width: u32,
    eps: f32,
    rows: u32,
}

pub(super) fn forward(op: &RmsNorm, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let shape = &call.input(0).shape;
    let weighted = call.inputs() > 1;
    let dispatch = Dispatch::new(&FORWARD)
        .part(reduce(call.facts))
        .part(if weighted { &WEIGHTED } else { &PLAIN })
        .constant("WG", lanes(shape.width(), call.facts))
        .params(&Params { width: shape.width() as u32, eps: op.eps, rows: shape.rows() as u32 })
        .read(Place::Input(0))
        .write(Place::Output(0))
        .grid_over(shape.rows());
    vec![if weighted { dispatch.read(Place::Input(1)) } else { dispatch }]
}
