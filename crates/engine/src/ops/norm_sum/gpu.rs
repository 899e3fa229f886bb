//! One workgroup per row.

use bytemuck::NoUninit;

use super::NormSum;
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Place},
    ops::{add_norm::gpu::lanes, parts::reduce},
};

static FORWARD: Kernel = Kernel { name: "norm_sum/forward", source: include_str!("forward.wgsl") };

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    width: u32,
    eps: f32,
    rows: u32,
}

pub(super) fn forward(op: &NormSum, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let shape = &call.input(0).shape;
    vec![
        Dispatch::new(&FORWARD)
            .part(reduce(call.facts))
            .constant("WG", lanes(shape.width(), call.facts))
            .params(&Params { width: shape.width() as u32, eps: op.eps, rows: shape.rows() as u32 })
            .read(Place::Input(0))
            .read(Place::Input(1))
            .read(Place::Input(2))
            .read(Place::Input(3))
            .write(Place::Output(0))
            .grid_over(shape.rows()),
    ]
}
