//! One lane per element, or one workgroup per row for f16 columns; the function is a part.

use bytemuck::NoUninit;

use super::{Activation, Elementwise};
use crate::{
    gpu::{BufferRef, Dispatch, F16Columns, GpuCall, Kernel, Part},
    ops::{
        add_norm::gpu::lanes,
        parts::{GELU, gate, reduce},
    },
};

/// A kernel behind the parameters that all of them share.
macro_rules! kernel {
    ($name:literal) => {
        Kernel {
            name: concat!("elementwise/", $name),
            source: concat!(include_str!("params.wgsl"), include_str!(concat!($name, ".wgsl"))),
        }
    };
}

static EACH: Kernel = kernel!("each");
static COLUMNS: Kernel = kernel!("f16_columns");

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    len: u32,
    width: u32,
    other: u32,
    offset: u32,
    constant: f32,
    second: f32,
}

pub(super) fn forward(op: &Elementwise, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let shape = &call.output(0).shape;
    let other = op.other_width(&|i| call.input(i).shape.width());
    let (part, activated) = function(op);
    let [constant, second] = op.constants();
    let columns = call.result_edge(0).f16_columns();
    let kernel = if columns.is_some() { &COLUMNS } else { &EACH };
    let mut dispatch = F16Columns::stored(columns, Dispatch::new(kernel).part(part));
    if activated {
        dispatch = dispatch.part(GELU);
    }
    if let Some(activation) = gate_of(op) {
        dispatch = dispatch.part(gate(activation));
    }
    dispatch = dispatch
        .params(&Params {
            len: shape.len() as u32,
            width: shape.width() as u32,
            other: other as u32,
            offset: op.offset(&|i| call.input(i).shape.width()) as u32,
            constant,
            second,
        })
        .write(BufferRef::Output(0));
    dispatch = match columns {
        // One workgroup per row.
        Some(_) => dispatch
            .part(reduce(call.facts))
            .constant("WG", lanes(shape.width(), call.facts))
            .grid_over(shape.rows()),
        None => dispatch.grid_over(shape.len().div_ceil(256)),
    };
    vec![(0..call.inputs()).fold(dispatch, |dispatch, i| dispatch.read(BufferRef::Input(i)))]
}

/// A part of kind `function`, and whether it needs the part with GELU, the logistic function and tanh.
macro_rules! function {
    ($name:literal, $activated:literal) => {
        (part!("function", $name), $activated)
    };
}

/// The activation of a gate, where the function has one.
fn gate_of(op: &Elementwise) -> Option<Activation> {
    match op {
        Elementwise::Gated(activation)
        | Elementwise::GatedHalves(activation)
        | Elementwise::GatedHalvesGrad(activation) => Some(*activation),
        Elementwise::SiluGrad => Some(Activation::Silu),
        _ => None,
    }
}

fn function(op: &Elementwise) -> (&'static Part, bool) {
    match op {
        Elementwise::Mul => function!("mul", false),
        Elementwise::Scale { .. } => function!("scale", false),
        Elementwise::ScaleBy => function!("scale_by", false),
        Elementwise::Gelu => function!("gelu", true),
        Elementwise::GeluGrad => function!("gelu_grad", true),
        Elementwise::Gated(_) => function!("gated", true),
        Elementwise::GatedHalves(_) => function!("gated_halves", true),
        Elementwise::GatedHalvesGrad(_) => function!("gated_halves_grad", true),
        Elementwise::Softcap { .. } => function!("softcap", true),
        Elementwise::SoftcapGrad { .. } => function!("softcap_grad", false),
        Elementwise::Clamp { .. } => function!("clamp", false),
        Elementwise::Standardise => function!("standardise", false),
        Elementwise::Silu => function!("silu", true),
        Elementwise::SiluGrad => function!("silu_grad", true),
        Elementwise::GluHalves => function!("glu_halves", true),
        Elementwise::AddRow => function!("add_row", false),
        Elementwise::ScaleRow { .. } => function!("scale_row", false),
        Elementwise::GeluMulSlice { .. } => function!("gelu_mul_slice", true),
        Elementwise::MulSlice { .. } => function!("mul_slice", false),
        Elementwise::PlaceSlice { .. } => function!("place_slice", false),
    }
}
