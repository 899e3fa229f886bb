//! One lane per output element.

use bytemuck::NoUninit;

use super::{Plane, SIDE};
use crate::gpu::{BufferRef, Dispatch, GpuCall, Kernel};

static HALF: Kernel = Kernel { name: "convolution/half", source: include_str!("half.wgsl") };
static PAST: Kernel = Kernel { name: "convolution/past", source: include_str!("past.wgsl") };

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct HalfParams {
    rows: u32,
    columns: u32,
    channels: u32,
    out_channels: u32,
    first: u32,
    outs: u32,
    chunk: u32,
    len: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct PastParams {
    len: u32,
    columns: u32,
    taps: u32,
}

/// Weights in workgroup memory, as in the kernel, and maximum output channels of a dispatch: at least one input channel fits.
const SHARED_WEIGHTS: usize = 2048;
const MAX_OUTS: usize = 128;

pub(super) fn half(plane: &Plane) -> Vec<Dispatch> {
    let dispatch = |first: usize| {
        let outs = (plane.out_channels - first).min(MAX_OUTS);
        let len = plane.positions() * outs;
        let params = HalfParams {
            rows: plane.rows as u32,
            columns: plane.columns as u32,
            channels: plane.channels as u32,
            out_channels: plane.out_channels as u32,
            first: first as u32,
            outs: outs as u32,
            chunk: (SHARED_WEIGHTS / (SIDE * SIDE * (outs + 1))) as u32,
            len: len as u32,
        };
        dispatch(&HALF).params(&params).grid_over(len.div_ceil(256))
    };
    (0..plane.out_channels).step_by(MAX_OUTS).map(dispatch).collect()
}

pub(super) fn past(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let shape = &call.input(0).shape;
    let taps = call.input(1).shape.len() / shape.width();
    let params =
        PastParams { len: shape.len() as u32, columns: shape.width() as u32, taps: taps as u32 };
    vec![dispatch(&PAST).params(&params).grid_over(shape.len().div_ceil(256))]
}

fn dispatch(kernel: &'static Kernel) -> Dispatch {
    Dispatch::new(kernel)
        .read(BufferRef::Input(0))
        .read(BufferRef::Input(1))
        .write(BufferRef::Output(0))
}
