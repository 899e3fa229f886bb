//! One workgroup per row.

use bytemuck::NoUninit;

use super::NormSum;
use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Part},
    ops::{add_norm::gpu::lanes, parts::reduce},
};

static FORWARD: Kernel = Kernel { name: "norm_sum/forward", source: include_str!("forward.wgsl") };

static VEC4S: &Part = part!("elements", "vec4");
static SCALARS: &Part = part!("elements", "scalars");

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    width: u32,
    reads: u32,
    eps: f32,
    rows: u32,
}

pub(super) fn forward(op: &NormSum, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let shape = &call.input(0).shape;
    let (rows, width) = (shape.rows(), shape.width());
    let (elements, reads) =
        if width.is_multiple_of(4) { (VEC4S, width / 4) } else { (SCALARS, width) };
    let params =
        Params { width: width as u32, reads: reads as u32, eps: op.eps, rows: rows as u32 };
    vec![
        Dispatch::new(&FORWARD)
            .part(reduce(call.facts))
            .part(elements)
            .constant("WG", lanes(width, call.facts))
            .params(&params)
            .read(BufferRef::Input(0))
            .read(BufferRef::Input(1))
            .read(BufferRef::Input(2))
            .read(BufferRef::Input(3))
            .write(BufferRef::Output(0))
            .grid_over(rows),
    ]
}
