//! One workgroup per norm.

use bytemuck::NoUninit;

use super::RmsNormGrad;
use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Part},
    ops::{parts::reduce, split_k::Base},
};

static GRADIENT: Kernel =
    Kernel { name: "rms_norm_grad/gradient", source: include_str!("gradient.wgsl") };
static WEIGHTED: &Part = part!("weight", "weighted");
static PLAIN: &Part = part!("weight", "none");

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    width: u32,
    eps: f32,
    rows: u32,
}

pub(super) fn forward(op: &RmsNormGrad, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let rows = call.input(0).shape.len() / op.width;
    let weighted = call.inputs() > 2;
    let dispatch = Dispatch::new(&GRADIENT)
        .part(reduce(call.facts))
        .part(if weighted { WEIGHTED } else { PLAIN })
        .params(&Params { width: op.width as u32, eps: op.eps, rows: rows as u32 })
        .read(BufferRef::Input(0))
        .read(BufferRef::Input(1))
        .write(BufferRef::Output(0))
        .grid_over(rows);
    let dispatch = if weighted { dispatch.read(BufferRef::Input(2)) } else { dispatch };
    let base = if call.inputs() > 3 { Base::Added(BufferRef::Input(3)) } else { Base::None };
    vec![base.composed(dispatch)]
}
