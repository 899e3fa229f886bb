//! Batched GEMV: the weight is read once for up to 8 tokens, each of which is computed as by itself to the last bit. More tokens are
//! groups of 8, whose workgroups run next to each other, so that the second group finds the weight in cache.

use super::{
    gemv::{
        GLOBAL_X, Gemv, GemvSlab, MAX_BATCHED, SUMS, X_WORDS,
        handoff::INT8_WORDS,
        quantise_part,
        tiling::{GemvTiling, XForm},
    },
    lora::{BranchLora, LoraPlan},
    op::{Epilogue, LoraForm},
};
use crate::{
    gpu::{BufferRef, Dispatch, Kernel},
    ops::parts,
};

static GEMV_BATCH: Kernel =
    Kernel { name: "matmul/gemv_batch", source: include_str!("gemv_batch.wgsl") };
static QUANTISE: Kernel = Kernel { name: "matmul/quantise", source: include_str!("quantise.wgsl") };

/// Rows of a weight per team if x is staged; they share the reads of x.
const ROWS: usize = 2;

/// One dispatch, or two if x is staged; `None` if no kernel has the combination, or the device lacks lanes or bindings.
pub(super) fn dispatches(slab: &GemvSlab<'_>) -> Option<Vec<Dispatch>> {
    let Gemv { op, call, edges, .. } = slab.gemv;
    let (problem, one) = (&slab.problem, &slab.tiling);
    let staged = one.x_form != XForm::Direct;
    // The dispatch that stages x has no binding for the input of this epilogue.
    if staged && matches!(op.epilogue, Epilogue::GeluMul { .. }) {
        return None;
    }
    let rows = if staged { ROWS } else { problem.rows_each };
    // As for one token, except for what does not change the bits.
    let lanes = problem.whole(one.team, rows, one.team.group());
    if lanes > call.facts.invocations as usize {
        return None;
    }
    let turns = problem.rows.div_ceil(lanes / one.team.size() * rows);
    let tiling = GemvTiling { rows, lanes, turns, groups: turns, ..*one };
    let batch = Batch { slab, tiling, staged };
    let width = call.input(op.weight_input()).shape.width();
    let gemv = batch.gemv(width);
    if edges.reads_int8() || !staged {
        return Some(vec![gemv]);
    }
    let stage = batch.stage_x(width);
    let batched = matches!(op.lora, LoraForm::None | LoraForm::Slots);
    debug_assert!(batched, "other LoRA forms are for one token");
    let fits = stage.bindings.len() <= call.facts.storage_buffers as usize;
    fits.then(|| vec![stage, gemv])
}

/// A batched GEMV over one slab.
struct Batch<'a> {
    slab: &'a GemvSlab<'a>,
    tiling: GemvTiling,
    staged: bool,
}

impl Batch<'_> {
    fn is_packed(&self) -> bool {
        matches!(self.tiling.x_form, XForm::Packed | XForm::Pairs)
    }

    /// Pieces per row, and vec4s per piece.
    fn pieces(&self) -> (usize, usize) {
        let form = self.tiling.x_form;
        (self.slab.problem.row_units / form.piece_units(), form.piece_groups())
    }

    /// The buffer with staged x of all tokens.
    fn staged_x(&self) -> BufferRef {
        let (pieces, groups) = self.pieces();
        let words = if self.is_packed() { groups / 2 + 1 } else { groups + 1 };
        BufferRef::Scratch(0, (self.slab.gemv.span.tokens * pieces * words * 16) as u64)
    }

    fn gemv(&self, width: usize) -> Dispatch {
        let Gemv { op, edges, span, .. } = self.slab.gemv;
        let (tiling, (pieces, groups)) = (&self.tiling, self.pieces());
        let token_groups = span.tokens.div_ceil(MAX_BATCHED);
        let dispatch = self
            .slab
            .base(&GEMV_BATCH, tiling)
            .part(SUMS)
            .constant("ROWS", tiling.rows as u32)
            .constant("TOKENS", span.tokens.min(MAX_BATCHED) as u32)
            .constant("TOKEN_GROUPS", token_groups as u32)
            .params(&self.slab.params())
            .grid_over(tiling.groups * token_groups)
            .read(BufferRef::Slab(op.weight_input(), self.slab.slab))
            .read(if self.staged { self.staged_x() } else { BufferRef::Input(0) })
            .write(BufferRef::Output(op.y_output()));
        let dispatch = self.slab.activation(tiling, self.slab.epilogue(tiling, dispatch));
        // In a GEMV of one token the prologue adds this part.
        let dispatch = match edges.writes_int8() {
            true => dispatch.part(quantise_part(XForm::Packed)),
            false => dispatch,
        };
        let dispatch = match op.epilogue.input() {
            Some(input) => dispatch.read(BufferRef::Input(input)),
            None => dispatch,
        };
        let dispatch = self.slab.gemv.lora.with_slots(dispatch);
        if edges.reads_int8() {
            return dispatch;
        }
        if !self.staged {
            return dispatch.part(parts::columns(width));
        }
        let dispatch = dispatch.constant("PIECES", pieces as u32);
        match self.is_packed() {
            true => dispatch.part(INT8_WORDS).constant("GROUPS", groups as u32),
            false => dispatch
                .part(GLOBAL_X)
                .part(X_WORDS)
                .constant("X_VEC4S", self.slab.problem.row_units as u32 * 8),
        }
    }

    /// The dispatch that runs the prologue of each token once and writes x in the form in which a workgroup of one token stages it.
    fn stage_x(&self, width: usize) -> Dispatch {
        let Gemv { op, span, .. } = self.slab.gemv;
        let one = &self.slab.tiling;
        let dispatch = LoraPlan::none(self.slab.base(&QUANTISE, one))
            .part(parts::columns(width))
            .part(match self.is_packed() {
                true => part!("write_x", "int8_pair"),
                false => part!("write_x", "floats"),
            })
            .params(&self.slab.params())
            .grid(span.tokens, 1, 1);
        let dispatch = self.slab.bind(self.staged_x(), self.slab.prologue(one, dispatch));
        BranchLora::none(&op.prologue, dispatch)
    }
}
