//! The WGSL parts and bindings of a GEMV: prologue, rows, activation, epilogue.

use super::{
    Gemv, GemvSlab, handoff,
    tiling::{GemvTiling, XForm},
    word,
};
use crate::{
    gpu::{BufferRef, Dispatch, Kernel, Layout, Part, SplitKvPartials},
    ops::{
        matmul::{
            lora::folded_part,
            op::{EdgeLayouts, Epilogue, FusedLinear, Prologue, RowSelect},
        },
        parts::{self, GELU, UNIT, WEIGHTS, X_UNIT, quant},
    },
};

/// Dot products of packed bytes with int8 hi/lo pairs.
pub(super) static INT8_DOT: &Part = part!("int8_dot", "hi_lo");

/// Dot products of the rows of a team with a piece of x.
pub(in crate::ops::matmul) static SUMS: &Part = part!("sums", "rows");

/// Reads staged x.
pub(in crate::ops::matmul) static X_WORDS: &Part = part!("x_words", "workgroup");

/// Reads x from global memory, where another dispatch staged it.
pub(in crate::ops::matmul) static GLOBAL_X: &Part = part!("x_memory", "global");

impl GemvSlab<'_> {
    /// A dispatch with the parts that all GEMV kernels have: the weight, and lanes that read it.
    pub(in crate::ops::matmul) fn base(
        &self,
        kernel: &'static Kernel,
        tiling: &GemvTiling,
    ) -> Dispatch {
        let (facts, dtype) = (self.gemv.call.facts, self.gemv.slabs.dtype);
        let dispatch = Dispatch::new(kernel)
            .part(part!("params", "gemv"))
            .part(WEIGHTS)
            .part(quant(dtype))
            .part(UNIT)
            .part(parts::team(facts))
            .constant("PADDED", u32::from(self.gemv.call.is_batch_invariant()))
            .constant("WG", tiling.lanes as u32)
            .constant("LANES", tiling.team.lanes as u32)
            .constant("SPLIT", tiling.team.split as u32);
        match facts.subgroups {
            Some((least, _)) => dispatch
                .constant("WIDE", wide(tiling.lanes, least))
                .constant("SUMS", tiling.rows as u32),
            None => dispatch,
        }
    }

    /// Adds the part that selects the rows of the weight.
    pub(super) fn row_select(&self, dispatch: Dispatch) -> Dispatch {
        let Gemv { op, call, slabs, span, .. } = self.gemv;
        let weight = &call.input(op.weight_input()).shape;
        let experts = |dispatch: Dispatch| {
            dispatch.constant("EXPERTS", word(weight.rows() / span.expert_rows))
        };
        match op.rows {
            RowSelect::All => dispatch.part(part!("rows", "all")),
            RowSelect::Experts(rows) if rows.summed => {
                let row_pieces = slabs.row_units() / self.tiling.x_form.piece_units();
                let dispatch = dispatch.part(part!("rows", "summed_experts"));
                experts(dispatch.constant("ROW_PIECES", row_pieces as u32))
            }
            RowSelect::Experts(_) => experts(dispatch.part(part!("rows", "experts")))
                .constant("PART_ROWS", word(span.expert_rows / self.problem.rows_each))
                .constant("BAND_ROWS", word(self.problem.rows / self.problem.rows_each)),
        }
    }

    /// Adds the parts of the epilogue.
    pub(in crate::ops::matmul) fn epilogue(
        &self,
        tiling: &GemvTiling,
        dispatch: Dispatch,
    ) -> Dispatch {
        let Gemv { op, edges, .. } = self.gemv;
        let floats = |dispatch: Dispatch| dispatch.part(part!("store", "floats"));
        if let Epilogue::Gated(activation) = op.epilogue {
            let gate = parts::gate(activation);
            let dispatch = dispatch.part(part!("epilogue", "gated")).part(gate).part(GELU);
            return match edges.y.filter(|layout| layout.int8) {
                Some(layout) => handoff::written(tiling, layout, dispatch),
                None => Layout::stored(edges.y, floats(dispatch)),
            };
        }
        let dispatch = floats(dispatch.part(part!("epilogue", "per_row")));
        match op.epilogue {
            Epilogue::Plain | Epilogue::Gated(_) => dispatch.part(part!("output", "plain")),
            Epilogue::GeluMul { .. } => dispatch.part(part!("output", "gelu_mul")).part(GELU),
            Epilogue::Softcap { cap } => {
                dispatch.part(part!("output", "softcap")).part(GELU).constant("CAP", cap)
            }
        }
    }

    /// Adds the parts that convert weights and x to the form of the dot products.
    pub(in crate::ops::matmul) fn activation(
        &self,
        tiling: &GemvTiling,
        dispatch: Dispatch,
    ) -> Dispatch {
        let edges: EdgeLayouts = self.gemv.edges;
        match tiling.x_form {
            XForm::Direct if edges.reads_int8() => handoff::read(self.problem.row_units, dispatch),
            XForm::Direct if edges.x.is_some() => dispatch.part(part!("activation", "permuted")),
            XForm::Direct => dispatch.part(part!("activation", "direct")).part(X_UNIT),
            XForm::Floats => dispatch.part(part!("activation", "floats")),
            XForm::Packed => dispatch.part(part!("activation", "packed")).part(INT8_DOT),
            XForm::Pairs => dispatch.part(part!("activation", "pairs")).part(INT8_DOT),
        }
    }

    /// Adds the parts of the prologue.
    pub(in crate::ops::matmul) fn prologue(
        &self,
        tiling: &GemvTiling,
        dispatch: Dispatch,
    ) -> Dispatch {
        let Gemv { op, edges, .. } = self.gemv;
        let next_norm = |norm: bool| match norm {
            true => part!("next_norm", "norm"),
            false => part!("next_norm", "none"),
        };
        let dispatch = match &op.prologue {
            Prologue::Rows(_) if edges.reads_int8() => {
                return dispatch.part(part!("prologue", "handoff"));
            }
            Prologue::Rows(_) if tiling.x_form == XForm::Direct => {
                return dispatch.part(part!("prologue", "direct"));
            }
            Prologue::Rows(_) if let Some(partials) = edges.partials => dispatch
                .part(part!("prologue", "split_kv"))
                .constant("SPLITS", partials.splits as u32)
                .constant("PART_TILE", partials.tile as u32)
                .constant("PART_OWN_KEY", u32::from(partials.own_key))
                .constant("PART_WINDOW", partials.window.min(i32::MAX as u32))
                .constant("HEAD_VEC4S", partials.vec4s as u32)
                .constant("SPLIT_ROWS_AT", partials.rows_at() as u32),
            Prologue::Rows(_) => dispatch.part(part!("prologue", "staged")),
            Prologue::Norm { .. } => dispatch.part(part!("prologue", "norm")).part(next_norm(true)),
            Prologue::ResidualAdd { branch, next, .. } => dispatch
                .part(part!("prologue", "residual_add"))
                .constant("POST_NORM", u32::from(branch.post_norm))
                .part(next_norm(next.is_some()))
                .part(folded_part(op.lora)),
        };
        let dispatch =
            dispatch.part(part!("x_memory", "workgroup")).part(quantise_part(tiling.x_form));
        dispatch
            .part(self.stage(tiling))
            .part(X_WORDS)
            .constant("PIECES", (self.problem.row_units / tiling.x_form.piece_units()) as u32)
            .constant("X_VEC4S", self.problem.row_units as u32 * 8)
            .constant("GROUPS", tiling.x_form.piece_groups() as u32)
    }

    /// How x is staged: by shuffles where subgroups hold whole pieces.
    fn stage(&self, tiling: &GemvTiling) -> &'static Part {
        let lanes = tiling.x_form.piece_groups() / 2;
        let facts = self.gemv.call.facts;
        let whole = facts.subgroups.is_some_and(|(least, _)| least as usize >= lanes)
            && tiling.lanes.is_multiple_of(lanes);
        match whole {
            true => part!("stage", "shuffle"),
            false => part!("stage", "memory"),
        }
    }

    /// Binds the weight, x or h, y; the extra input of prologue or epilogue; then the experts' ids, or the inputs of the residual add.
    pub(in crate::ops::matmul) fn bind(&self, y: BufferRef, dispatch: Dispatch) -> Dispatch {
        let Gemv { op, call, edges, .. } = self.gemv;
        let x = edges.partials.map_or(BufferRef::Input(0), SplitKvPartials::buffer);
        let weight = BufferRef::Slab(op.weight_input(), self.slab);
        let mut dispatch = dispatch.read(weight).read(x).write(y);
        if let Some(Some(extra)) = extra_input(op) {
            dispatch = dispatch.read(BufferRef::Input(extra));
        }
        if let RowSelect::Experts(experts) = op.rows {
            let ids = op.weight_input() + 1;
            dispatch = dispatch.read(BufferRef::Input(ids));
            return match experts.summed {
                true => dispatch.read(BufferRef::Input(ids + 1)),
                false => dispatch,
            };
        }
        if let Prologue::ResidualAdd { branch, .. } = &op.prologue {
            debug_assert!(call.inputs() > 3, "a branch and a weight");
            dispatch = dispatch
                .read(BufferRef::Input(branch.branch))
                .read(BufferRef::Input(branch.weight))
                // Without a scale the weight is bound in its place and not read.
                .read(BufferRef::Input(branch.scale.unwrap_or(branch.weight)))
                .write(BufferRef::Output(0));
        }
        dispatch
    }
}

/// How staged x is quantised.
pub(in crate::ops::matmul) fn quantise_part(x_form: XForm) -> &'static Part {
    match x_form {
        XForm::Packed | XForm::Pairs => part!("quantise", "int8_pair"),
        XForm::Floats | XForm::Direct => part!("quantise", "none"),
    }
}

/// The input of the fourth binding, if any. `None` if there would be two (every device has only eight bindings), or none before others,
/// which no model has.
pub(super) fn extra_input(op: &FusedLinear) -> Option<Option<usize>> {
    match (op.prologue.norm_input(), op.epilogue.input()) {
        (Some(_), Some(_)) => None,
        (None, None) if !op.prologue.is_rows() => None,
        (one, other) => Some(one.or(other)),
    }
}

/// Lanes that sum by shuffles in a sum over the workgroup: at most a subgroup, and a divisor of the workgroup.
fn wide(lanes: usize, least: u32) -> u32 {
    let whole = 1 << lanes.trailing_zeros();
    least.min(32).min(whole)
}
