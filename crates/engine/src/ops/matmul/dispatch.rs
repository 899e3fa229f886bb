//! Builds the dispatches of a fused linear layer in the form that [`select`](super::select) chooses, and decides which layouts they read and
//! write.

use super::{
    gemv::{
        Gemv, GemvProblem, GemvSlab, handoff,
        tiling::{GemvTiling, XForm},
    },
    gemv_batch, lora,
    op::{EdgeLayouts, FusedLinear, LoraForm, RowSelect},
    select::{Form, Shape},
};
use crate::{
    gpu::{Dispatch, Edge, GpuCall, Layout, SplitKvPartials},
    ops::parts::is_packed,
};

/// The GEMV dispatches of a fused linear layer of one token or of a batch-invariant graph; `None` if it takes the unfused operations.
pub(super) fn gemv(op: &FusedLinear, call: &GpuCall<'_>) -> Option<Vec<Dispatch>> {
    let (x, y) = (call.input_edge(), call.result_edge(op.y_output()));
    let edges = EdgeLayouts { x: x.layout(), partials: x.partials(), y: y.layout() };
    slab_dispatches(&Gemv::new(op, call, edges)?)
}

/// One dispatch per slab, or two for a batched GEMV, after the down-projection of adapter slots; `None` if the device lacks workgroup memory, lanes or bindings.
fn slab_dispatches(gemv: &Gemv<'_>) -> Option<Vec<Dispatch>> {
    let mut dispatches = Vec::new();
    if let Some(slots) = &gemv.lora.slots {
        dispatches.push(gemv.slab(0)?.slot_down(slots)?);
    }
    for slab in 0..gemv.slabs.rows.len() {
        let slab = gemv.slab(slab)?;
        let batched = gemv.is_batchable() && form(&slab) == Form::GemvBatch;
        match batched.then(|| gemv_batch::dispatches(&slab)).flatten() {
            Some(batched) => dispatches.extend(batched),
            None => dispatches.push(slab.dispatch()?),
        }
    }
    Some(dispatches)
}

/// The form of a slab: GEMV or batched GEMV.
fn form(slab: &GemvSlab<'_>) -> Form {
    let Gemv { call, slabs, span, .. } = slab.gemv;
    let shape = Shape {
        tokens: span.tokens,
        batch_invariant: true,
        rows: slab.problem.rows,
        row_units: slab.problem.row_units,
        staged: slab.tiling.x_form != XForm::Direct,
        ..Shape::of_slab(&call.input(0).shape, slabs, slab.slab)
    };
    Form::new(&shape, call.facts)
}

/// Whether a fused linear layer takes GEMV kernels.
pub(super) fn is_gemv(op: &FusedLinear, call: &GpuCall<'_>) -> bool {
    has_kernel(op, call, EdgeLayouts::default())
}

/// Whether it does with these layouts.
fn has_kernel(op: &FusedLinear, call: &GpuCall<'_>, edges: EdgeLayouts) -> bool {
    Gemv::new(op, call, edges).is_some_and(|gemv| slab_dispatches(&gemv).is_some())
}

/// The form in which a linear layer prefers to read x, given the producer's offer.
pub(super) fn read_edge(op: &FusedLinear, call: &GpuCall<'_>, offered: Edge) -> Edge {
    if !op.is_plain() {
        return Edge::RowMajor;
    }
    let partials = offered.partials().filter(|_| op.rows == RowSelect::All);
    if let Some(partials) = partials.and_then(|partials| read_partials(op, call, partials)) {
        return Edge::SplitKv(partials);
    }
    preferred_layout(op, call).map_or(Edge::RowMajor, Edge::Permuted)
}

/// The split-KV partials that a linear layer can combine, if any: with LoRA partials if its adapter allows.
fn read_partials(
    op: &FusedLinear,
    call: &GpuCall<'_>,
    partials: SplitKvPartials,
) -> Option<SplitKvPartials> {
    let known = matches!(op.lora, LoraForm::None | LoraForm::Slots) || op.lora.has_down_rows();
    let takes = |partials| {
        let edges = EdgeLayouts { partials: Some(partials), ..EdgeLayouts::default() };
        has_kernel(op, call, edges)
    };
    if !known || !call.input(0).shape.width().is_multiple_of(32) || !takes(partials) {
        return None;
    }
    if partials.paged {
        return Some(partials);
    }
    let with_lora = lora::partials(op, call, partials)
        .map(|lora| SplitKvPartials { lora: Some(lora), ..partials });
    Some(with_lora.filter(|partials| takes(*partials)).unwrap_or(partials))
}

/// The layout in which a linear layer without prologue and epilogue prefers x, if every team reads x from global memory. The activations of
/// a token's experts are one long row.
fn preferred_layout(op: &FusedLinear, call: &GpuCall<'_>) -> Option<Layout> {
    let gemv = Gemv::new(op, call, EdgeLayouts::default())?;
    let slabs = &gemv.slabs;
    let direct = |slab: usize| {
        let tiling = GemvTiling::new(&GemvProblem::new(&gemv, slab), call.facts);
        tiling.is_some_and(|tiling| tiling.x_form == XForm::Direct)
    };
    let direct = call.input(0).shape.width().is_multiple_of(32)
        && (0..slabs.rows.len()).all(direct)
        && slab_dispatches(&gemv).is_some();
    let int8 = is_packed(slabs.dtype) && call.facts.packed_dot;
    let layout = Layout::new(slabs.dtype, slabs.row_units() * gemv.span.times);
    layout.filter(|_| direct).map(|layout| Layout { int8, ..layout })
}

/// The layout in which a GEMV stores its result if its reader prefers `layout`: quantised if its workgroups can.
pub(super) fn produced_layout(op: &FusedLinear, call: &GpuCall<'_>, layout: Layout) -> Layout {
    let edges = EdgeLayouts { y: Some(layout), ..EdgeLayouts::default() };
    let quantises =
        |gemv: Gemv<'_>| handoff::is_possible(&gemv) && slab_dispatches(&gemv).is_some();
    match layout.int8 && Gemv::new(op, call, edges).is_some_and(quantises) {
        true => layout,
        false => layout.of_floats(),
    }
}
