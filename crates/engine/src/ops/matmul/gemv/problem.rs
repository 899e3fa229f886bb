//! The sizes of a GEMV that its tiling depends on.

use super::{Gemv, MAX_BATCHED};
use crate::{
    gpu::{GpuCall, Layout},
    ops::{
        matmul::{
            moe::Sizes,
            op::{Epilogue, FusedLinear, Prologue, RowSelect},
        },
        parts,
    },
};

/// What the tiling of a GEMV depends on, besides the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::matmul) struct GemvProblem {
    /// Rows of the slab.
    pub(in crate::ops::matmul) rows: usize,
    /// Units summed for an output row.
    pub(in crate::ops::matmul) row_units: usize,
    /// Rows per output.
    pub(in crate::ops::matmul) rows_each: usize,
    /// Outputs of a workgroup's turn should be a multiple of this.
    pub(in crate::ops::matmul) step: usize,
    /// Whether the prologue computes x in workgroup memory.
    pub(in crate::ops::matmul) computes_x: bool,
    /// KV splits that the prologue combines.
    pub(in crate::ops::matmul) kv_splits: usize,
    /// Whether the prologue adds a LoRA up-projection to the branch.
    pub(in crate::ops::matmul) branch_lora: bool,
    /// Whether weights can be read as packed int8.
    pub(in crate::ops::matmul) packed: bool,
    /// Whether pairs of units share their scales.
    pub(in crate::ops::matmul) paired: bool,
}

impl GemvProblem {
    /// The problem of a slab of a GEMV's weight.
    pub(in crate::ops::matmul) fn new(gemv: &Gemv<'_>, slab: usize) -> Self {
        let Gemv { op, slabs, span, edges, branch, .. } = gemv;
        Self {
            rows: span.rows.unwrap_or(slabs.rows[slab].len()),
            row_units: slabs.row_units() * span.times,
            rows_each: if op.epilogue.is_gated() { 2 } else { 1 },
            step: if edges.writes_int8() { Layout::HALF } else { 1 },
            computes_x: !op.prologue.is_rows() || edges.partials.is_some(),
            kv_splits: edges.partials.map_or(0, |partials| partials.splits),
            branch_lora: branch.is_some(),
            packed: parts::is_packed(slabs.dtype),
            paired: parts::is_paired(slabs.dtype),
        }
    }
}

/// Rows, width and number of the experts of a token, and the number of tokens.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops::matmul) struct ExpertSpan {
    /// Rows of the experts' weights that are computed; `None` without experts: those of a slab.
    pub(super) rows: Option<usize>,
    /// Rows of the weight that one row of x covers.
    pub(in crate::ops::matmul) times: usize,
    /// Rows of one expert.
    pub(super) expert_rows: usize,
    /// Experts per token; 0 without experts.
    pub(super) chosen: usize,
    /// Tokens.
    pub(in crate::ops::matmul) tokens: usize,
}

impl ExpertSpan {
    /// `None` if a GEMM computes that many tokens, or no kernel has the combination.
    pub(in crate::ops::matmul) fn new(op: &FusedLinear, call: &GpuCall<'_>) -> Option<Self> {
        let (at, x) = (op.weight_input(), &call.input(0).shape);
        let RowSelect::Experts(experts) = op.rows else {
            let tokens = x.rows();
            let single = tokens <= MAX_BATCHED || call.is_batch_invariant();
            let span = Self { rows: None, times: 1, expert_rows: 0, chosen: 0, tokens };
            return single.then_some(span);
        };
        let sizes = Sizes::new(call.input(at), call.input(at + 1));
        let (chosen, tokens) = (sizes.chosen, sizes.slots / sizes.chosen);
        let single = tokens == 1 || call.is_batch_invariant();
        let fits = single && sizes.width.is_multiple_of(32);
        let expert_rows = sizes.rows;
        let span = Self { rows: Some(sizes.rows), times: 1, expert_rows, chosen, tokens };
        match (&op.prologue, experts.summed, op.epilogue) {
            (Prologue::Norm { .. }, false, Epilogue::Plain | Epilogue::Gated(_)) if fits => {
                Some(Self { rows: Some(chosen * sizes.rows), ..span })
            }
            (Prologue::Rows(_), true, Epilogue::Plain) if fits && x.rows() == sizes.slots => {
                Some(Self { times: chosen, ..span })
            }
            _ => None,
        }
    }
}
