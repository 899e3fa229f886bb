//! One workgroup per row computes its largest logit and sum; a second dispatch sums the losses or computes the gradient.

use bytemuck::NoUninit;

use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    ops::parts::reduce,
};

static ROWS: Kernel = Kernel { name: "cross_entropy/rows", source: include_str!("rows.wgsl") };
static TOTAL: Kernel = Kernel { name: "cross_entropy/total", source: include_str!("total.wgsl") };
static GRADIENT: Kernel =
    Kernel { name: "cross_entropy/gradient", source: include_str!("gradient.wgsl") };

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    rows: u32,
    width: u32,
}

pub(super) fn loss(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let total = Dispatch::new(&TOTAL)
        .part(reduce(call.facts))
        .params(&params(call))
        .read(statistics(call))
        .write(BufferRef::Output(0));
    vec![rows(call), total]
}

pub(super) fn gradient(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let gradient = Dispatch::new(&GRADIENT)
        .params(&params(call))
        .read(BufferRef::Input(0))
        .read(BufferRef::Input(1))
        .read(BufferRef::Input(2))
        .read(statistics(call))
        .write(BufferRef::Output(0))
        .grid_over(call.output(0).shape.len().div_ceil(256));
    vec![rows(call), gradient]
}

fn rows(call: &GpuCall<'_>) -> Dispatch {
    Dispatch::new(&ROWS)
        .part(reduce(call.facts))
        .params(&params(call))
        .read(BufferRef::Input(0))
        .read(BufferRef::Input(1))
        .write(statistics(call))
        .grid_over(call.input(0).shape.rows())
}

/// Per row: largest logit, sum, loss.
fn statistics(call: &GpuCall<'_>) -> BufferRef {
    BufferRef::Scratch(0, call.input(0).shape.rows() as u64 * 12)
}

fn params(call: &GpuCall<'_>) -> Params {
    let shape = &call.input(0).shape;
    Params { rows: shape.rows() as u32, width: shape.width() as u32 }
}
