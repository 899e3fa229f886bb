//! One workgroup per row.

use bytemuck::NoUninit;

use super::RmsNorm;
use crate::{
    gpu::{BufferRef, Dispatch, F16Columns, GpuCall, Kernel, Part},
    ops::{add_norm::gpu::lanes, parts::reduce},
};

static FORWARD: Kernel = Kernel { name: "rms_norm/forward", source: include_str!("forward.wgsl") };
static WEIGHTED: &Part = part!("weight", "weighted");
static PLAIN: &Part = part!("weight", "none");
static ROWS: &Part = part!("output", "rows");
static F16_COLUMNS: &Part = part!("output", "f16_columns");

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
    let dispatch = Dispatch::new(&FORWARD).part(reduce(call.facts)).part(if weighted {
        WEIGHTED
    } else {
        PLAIN
    });
    let columns = call.result_edge(0).f16_columns();
    let output = if columns.is_some() { F16_COLUMNS } else { ROWS };
    let dispatch = F16Columns::stored(columns, dispatch.part(output))
        .constant("WG", lanes(shape.width(), call.facts))
        .params(&Params { width: shape.width() as u32, eps: op.eps, rows: shape.rows() as u32 })
        .read(BufferRef::Input(0))
        .write(BufferRef::Output(0))
        .grid_over(shape.rows());
    vec![if weighted { dispatch.read(BufferRef::Input(1)) } else { dispatch }]
}
