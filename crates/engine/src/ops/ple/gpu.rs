//! One workgroup per slice.

use bytemuck::NoUninit;

use super::Ple;
use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    ops::parts::reduce,
};

static FORWARD: Kernel = Kernel { name: "ple/forward", source: include_str!("forward.wgsl") };

/// Lanes per workgroup: slices have 256 elements in all released models, four per lane.
const LANES: u32 = 64;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    width: u32,
    eps: f32,
    slices: u32,
    row_factor: f32,
    projection_factor: f32,
}

pub(super) fn forward(op: &Ple, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let width = call.input(2).shape.len();
    let slices = call.output(0).shape.len() / width;
    let (row_factor, projection_factor) = op.factors(width);
    vec![
        Dispatch::new(&FORWARD)
            .part(reduce(call.facts))
            .constant("WG", LANES)
            .params(&Params {
                width: width as u32,
                eps: op.eps,
                slices: slices as u32,
                row_factor,
                projection_factor,
            })
            .read(BufferRef::Input(0))
            .read(BufferRef::Input(1))
            .read(BufferRef::Input(2))
            .write(BufferRef::Output(0))
            .grid_over(slices),
    ]
}
