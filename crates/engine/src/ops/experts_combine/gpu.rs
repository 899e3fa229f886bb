//! Forward: one lane per element of the sum. Backward: one workgroup per slot.

use bytemuck::NoUninit;

use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    ops::parts::reduce,
};

static FORWARD: Kernel =
    Kernel { name: "experts_combine/forward", source: include_str!("forward.wgsl") };
static BACKWARD: Kernel =
    Kernel { name: "experts_combine/backward", source: include_str!("backward.wgsl") };

/// Lanes of a workgroup.
const GROUP: usize = 256;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    width: u32,
    chosen: u32,
    count: u32,
}

pub(super) fn forward(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let y = &call.output(0).shape;
    vec![
        Dispatch::new(&FORWARD)
            .params(&params(y.width(), call, y.len()))
            .read(BufferRef::Input(0))
            .read(BufferRef::Input(1))
            .write(BufferRef::Output(0))
            .grid_over(y.len().div_ceil(GROUP)),
    ]
}

pub(super) fn backward(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let z = &call.input(0).shape;
    vec![
        Dispatch::new(&BACKWARD)
            .part(reduce(call.facts))
            .constant("WG", z.width().next_power_of_two().clamp(32, GROUP) as u32)
            .params(&params(z.width(), call, z.rows()))
            .read(BufferRef::Input(0))
            .read(BufferRef::Input(1))
            .read(BufferRef::Input(2))
            .write(BufferRef::Output(0))
            .write(BufferRef::Output(1))
            .grid_over(z.rows()),
    ]
}

fn params(width: usize, call: &GpuCall<'_>, count: usize) -> Params {
    let chosen = call.input(1).shape.width();
    Params { width: width as u32, chosen: chosen as u32, count: count as u32 }
}
