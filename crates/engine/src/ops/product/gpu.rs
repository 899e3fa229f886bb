//! The launches of a product of one column: one per slab.

use bytemuck::NoUninit;

use super::{
    Begin, End, Product,
    choice::{Column, Cut, Wants},
};
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Part, Place},
    ops::{
        parts::{self, ACTIVATION, UNIT, WEIGHTS, quant},
        slab::SlabParams,
    },
};

static VECTOR: Kernel = Kernel { name: "product/vector", source: include_str!("vector.wgsl") };

/// A part from this folder.
macro_rules! part {
    ($kind:literal, $name:literal) => {{
        static PART: Part = Part {
            kind: $kind,
            name: concat!($kind, "/", $name),
            source: include_str!(concat!($kind, "/", $name, ".wgsl")),
        };
        &PART
    }};
}

static SHARED: Part =
    Part { kind: "shared", name: "shared", source: include_str!("begin/shared.wgsl") };

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    slab: SlabParams,
    turns: u32,
    groups: u32,
    eps: f32,
    scaled: u32,
    offset: u32,
}

/// The launches of a product of one column; `None` if it must be made by the operations it stands for.
pub(crate) fn vector(op: &Product, call: &GpuCall<'_>) -> Option<Vec<Dispatch>> {
    let at = op.weight_input();
    let (x, weight, slabs) = (&call.input(0).shape, &call.input(at).shape, call.slabs(at));
    let makes_x = op.begin != Begin::Plain;
    let halves_apart = op.end == End::Geglu && slabs.rows.len() > 1;
    // Norms read four columns at a time.
    let odd = makes_x && !x.width().is_multiple_of(32);
    if x.rows() != 1 || halves_apart || odd || extra(op).is_none() {
        return None;
    }
    let launch = |slab: usize| {
        let cut = Cut::new(
            &Wants {
                rows: slabs.rows[slab].len(),
                row_units: slabs.row_units(),
                rows_each: if op.end == End::Geglu { 2 } else { 1 },
                makes_x,
                bytes: parts::is_packed(slabs.dtype),
            },
            call.facts,
        )?;
        let (eps, scaled) = match &op.begin {
            Begin::Plain => (0.0, false),
            Begin::Norm { eps } => (*eps, false),
            Begin::Added(op) => (op.eps, op.scaled),
        };
        let offset = if let End::GeluMul { slice } = op.end { slice * weight.rows() } else { 0 };
        let params = Params {
            slab: SlabParams::new(&slabs, slab, weight, 1),
            turns: cut.turns as u32,
            groups: cut.groups as u32,
            eps,
            scaled: u32::from(scaled),
            offset: offset as u32,
        };
        let dispatch = Dispatch::new(&VECTOR)
            .part(&WEIGHTS)
            .part(quant(slabs.dtype))
            .part(&UNIT)
            .part(parts::team(call.facts))
            .part(parts::columns(x.width()))
            .constant("WG", cut.lanes as u32)
            .constant("LANES", cut.team.lanes as u32)
            .constant("SPLIT", cut.team.split as u32)
            .constant("ROWS", cut.rows as u32)
            .params(&params)
            .grid_over(cut.groups);
        let dispatch = composed(op, &cut, slabs.row_units(), dispatch);
        Some(bound(op, slab, call, dispatch))
    };
    (0..slabs.rows.len()).map(launch).collect()
}

/// With the parts of begin and end.
fn composed(op: &Product, cut: &Cut, row_units: usize, dispatch: Dispatch) -> Dispatch {
    let dispatch = match op.end {
        End::Plain => dispatch.part(part!("finish", "plain")),
        End::Geglu => dispatch.part(part!("finish", "geglu")).part(&ACTIVATION),
        End::GeluMul { .. } => dispatch.part(part!("finish", "gelu_mul")).part(&ACTIVATION),
    };
    let next = |next: bool| if next { part!("next", "norm") } else { part!("next", "none") };
    let dispatch = match &op.begin {
        Begin::Plain if cut.column == Column::Direct => {
            return dispatch.part(part!("begin", "direct"));
        }
        Begin::Plain => dispatch.part(part!("begin", "staged")),
        Begin::Norm { .. } => dispatch.part(part!("begin", "normed")).part(next(true)),
        Begin::Added(op) => dispatch.part(part!("begin", "added")).part(next(op.next)),
    };
    let held = match cut.column {
        Column::Packed => part!("held", "packed"),
        Column::Floats | Column::Direct => part!("held", "floats"),
    };
    dispatch
        .part(&SHARED)
        .part(held)
        .constant("UNITS", row_units as u32)
        .constant("QUADS", row_units as u32 * 8)
}

/// With its bindings: weight, x or h, y; what the begin or the end reads besides; then what makes the residual stream.
fn bound(op: &Product, slab: usize, call: &GpuCall<'_>, dispatch: Dispatch) -> Dispatch {
    let y = if matches!(op.begin, Begin::Added(_)) { 1 } else { 0 };
    let mut dispatch = dispatch
        .read(Place::Slab(op.weight_input(), slab))
        .read(Place::Input(0))
        .write(Place::Output(y));
    if let Some(Some(extra)) = extra(op) {
        dispatch = dispatch.read(Place::Input(extra));
    }
    let Begin::Added(add) = &op.begin else { return dispatch };
    debug_assert!(call.inputs() > 3, "a branch and a weight");
    dispatch
        .read(Place::Input(1))
        .read(Place::Input(2))
        // Without a scale the weight stands in for it, unread.
        .read(Place::Input(add.scale_input().unwrap_or(2)))
        .write(Place::Output(0))
}

/// Which input the fourth binding is, if there is one. `None` if there would be two (eight bindings are all that every device has), or
/// none in front of others (no model wants that).
fn extra(op: &Product) -> Option<Option<usize>> {
    let next = match &op.begin {
        Begin::Plain => None,
        Begin::Norm { .. } => Some(1),
        Begin::Added(add) => add.next_input(),
    };
    let long = matches!(op.end, End::GeluMul { .. }).then_some(op.weight_input() + 1);
    match (next, long) {
        (Some(_), Some(_)) => None,
        (None, None) if op.begin != Begin::Plain => None,
        (one, other) => Some(one.or(other)),
    }
}
