//! GEMV: a weight times the activations of one token, of up to 8, or of any number in a batch-invariant graph; one dispatch per slab.

pub(super) mod handoff;
mod parts;
mod problem;
mod slot_down;
mod team;
pub(super) mod tiling;

pub(super) use parts::{GLOBAL_X, SUMS, X_WORDS, quantise_part};
pub(super) use problem::{ExpertSpan, GemvProblem};
pub(super) use team::Team;

use bytemuck::NoUninit;

use self::tiling::{GemvTiling, XForm};
use super::{
    lora::{BranchLora, LoraPlan},
    op::{EdgeLayouts, Epilogue, FusedLinear, LoraForm, RowSelect},
};
use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Slabs},
    ops::parts::{columns, is_read_in_words},
};

/// Tokens up to which a GEMV, batched or not, is used in graphs that are not batch-invariant.
pub(super) const MAX_BATCHED: usize = 8;

static GEMV: Kernel = Kernel { name: "matmul/gemv", source: include_str!("gemv.wgsl") };

/// Parameters of GEMV kernels, as in `params/gemv.wgsl`.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
pub(super) struct Params {
    planes: [u32; 4],
    width: u32,
    row_pieces: u32,
    pieces: u32,
    rows: u32,
    first_row: u32,
    turns: u32,
    groups: u32,
    eps: f32,
    scaled: u32,
    offset: u32,
    expert_rows: u32,
    lora_vec4s: u32,
    lora_stride: u32,
    x_columns: u32,
    y_width: u32,
    long_width: u32,
    chosen: u32,
    branch_stride: u32,
}

/// A fused linear layer as a GEMV.
pub(super) struct Gemv<'a> {
    pub(super) op: &'a FusedLinear,
    pub(super) call: &'a GpuCall<'a>,
    pub(super) edges: EdgeLayouts,
    pub(super) slabs: Slabs,
    pub(super) span: ExpertSpan,
    pub(super) lora: LoraPlan,
    branch: Option<BranchLora>,
}

impl<'a> Gemv<'a> {
    /// `None` if no kernel has the combination of prologue, rows, epilogue and LoRA form.
    pub(super) fn new(
        op: &'a FusedLinear,
        call: &'a GpuCall<'a>,
        edges: EdgeLayouts,
    ) -> Option<Self> {
        let slabs = call.slabs(op.weight_input());
        let one_slab = slabs.rows.len() == 1;
        let splits_halves = op.epilogue.is_gated() && !one_slab;
        // Norms read x as vec4s.
        let unaligned = !op.prologue.is_rows() && !call.input(0).shape.width().is_multiple_of(32);
        if splits_halves || unaligned || parts::extra_input(op).is_none() {
            return None;
        }
        let (span, lora) = (ExpertSpan::new(op, call)?, LoraPlan::new(op, call, edges)?);
        let branch = BranchLora::new(&op.prologue, call)?;
        let both = branch.is_some() && !matches!(op.lora, LoraForm::None | LoraForm::Folded { .. });
        if (op.rows != RowSelect::All && !one_slab) || both {
            return None;
        }
        Some(Self { op, call, edges, slabs, span, lora, branch })
    }

    /// A slab with its tiling; `None` if the device lacks workgroup memory or lanes.
    pub(super) fn slab(&self, slab: usize) -> Option<GemvSlab<'_>> {
        let (facts, tokens) = (self.call.facts, self.span.tokens);
        let problem = GemvProblem::new(self, slab);
        let tiling = GemvTiling::new(&problem, facts)?;
        let tiling = if tokens > 1 { tiling.of_several_tokens(&problem) } else { tiling };
        let written = if self.edges.writes_int8() { tiling.outputs(&problem) * 8 } else { 0 };
        let shared =
            tiling.shared_bytes(problem.row_units) + self.lora.shared_bytes(tiling.lanes) + written;
        let fits = self.lora.has_lanes(tiling.lanes) && shared <= facts.workgroup_bytes as usize;
        fits.then_some(GemvSlab { gemv: self, slab, problem, tiling })
    }

    /// Whether a batched GEMV can compute it: it has no experts, and no LoRA but that of adapter slots.
    pub(super) fn is_batchable(&self) -> bool {
        let lora = matches!(self.op.lora, LoraForm::None | LoraForm::Slots);
        self.op.rows == RowSelect::All && lora && self.branch.is_none()
    }

    /// The problem and the tiling of a weight with a single slab.
    pub(super) fn tiling(&self) -> Option<(GemvProblem, GemvTiling)> {
        let problem = GemvProblem::new(self, 0);
        Some((problem, GemvTiling::new(&problem, self.call.facts)?))
    }
}

/// A slab of a GEMV's weight, with its tiling.
pub(super) struct GemvSlab<'a> {
    pub(super) gemv: &'a Gemv<'a>,
    pub(super) slab: usize,
    pub(super) problem: GemvProblem,
    pub(super) tiling: GemvTiling,
}

impl GemvSlab<'_> {
    /// The dispatch; `None` if the device lacks bindings.
    pub(super) fn dispatch(&self) -> Option<Dispatch> {
        let Gemv { op, call, edges, lora, branch, span, .. } = self.gemv;
        let weight = &call.input(op.weight_input()).shape;
        let dispatch = self
            .base(&GEMV, &self.tiling)
            .constant("ROWS", self.tiling.rows as u32)
            .constant("TOKENS", span.tokens as u32)
            .params(&self.params())
            .grid_over(self.tiling.groups * span.tokens + lora.groups());
        let dispatch = self.row_select(dispatch);
        let dispatch = self.epilogue(&self.tiling, dispatch).part(SUMS);
        let dispatch = match edges.reads_int8() {
            true => dispatch,
            false => dispatch.part(columns(weight.width())),
        };
        // Weights can be loaded while the prologue computes x; with x as int8 pairs the longer kernel costs more than that saves.
        let early = self.problem.computes_x
            && self.tiling.x_form == XForm::Floats
            && op.rows == RowSelect::All;
        let dispatch = dispatch.part(match early && is_read_in_words(self.gemv.slabs.dtype) {
            true => part!("fetch", "prefetch"),
            false => part!("fetch", "direct"),
        });
        let dispatch = self.prologue(&self.tiling, self.activation(&self.tiling, dispatch));
        let dispatch = self.bind(BufferRef::Output(op.y_output()), dispatch);
        let dispatch = match branch {
            Some(branch) => branch.composed(dispatch, lora.weight_dtype())?,
            None => BranchLora::none(&op.prologue, dispatch),
        };
        let dispatch = lora.composed(dispatch, *edges, self.tiling.lanes);
        (dispatch.bindings.len() <= call.facts.storage_buffers as usize).then_some(dispatch)
    }

    /// The kernel's parameters.
    pub(super) fn params(&self) -> Params {
        let Gemv { op, call, slabs, span, lora, branch, .. } = self.gemv;
        let (slab, tiling, problem) = (self.slab, &self.tiling, &self.problem);
        let weight = &call.input(op.weight_input()).shape;
        let (eps, scaled) = op.prologue.eps_and_scaled();
        let (offset, long_width) = match op.epilogue {
            Epilogue::GeluMul { long, slice } => {
                (slice * weight.rows(), call.input(long).shape.width())
            }
            Epilogue::Plain | Epilogue::Gated(_) | Epilogue::Softcap { .. } => (0, 0),
        };
        let row_pieces = slabs.row_units() / tiling.x_form.piece_units();
        Params {
            planes: slabs.planes(slab),
            width: word(weight.width()),
            row_pieces: word(row_pieces),
            pieces: word(row_pieces * span.times),
            rows: word(problem.rows),
            first_row: word(slabs.rows[slab].start),
            turns: word(tiling.turns),
            groups: word(tiling.groups),
            eps,
            scaled: u32::from(scaled),
            offset: word(offset),
            expert_rows: word(span.expert_rows),
            lora_vec4s: word(lora.vec4s),
            lora_stride: word(lora.stride),
            x_columns: word(span.times),
            y_width: word(span.rows.unwrap_or(weight.rows()) / problem.rows_each),
            long_width: word(long_width),
            chosen: word(span.chosen),
            branch_stride: word(branch.as_ref().map_or(0, |branch| branch.stride)),
        }
    }
}

fn word(n: usize) -> u32 {
    u32::try_from(n).expect("sizes of one weight fit 32 bits")
}
