//! The sizes, parts and bindings that a LoRA form adds to a GEMV.

use rullama_gguf::DType;

use super::{slots::SlotPlan, up::UpProjection};
use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Layout, Part},
    ops::matmul::op::{EdgeLayouts, FusedLinear, LoraForm, Prologue, RowSelect},
};

/// Maximum vec4s that a lane of a down-rows workgroup prefetches at once.
const MAX_EACH: usize = 8;

/// The LoRA form of a GEMV.
pub(in crate::ops::matmul) struct LoraPlan {
    form: LoraForm,
    dtype: DType,
    rank: usize,
    /// Width of x, for down rows.
    width: usize,
    /// vec4s of the rank (for down rows: the number of rows), and of a row of the matrix in memory.
    pub(in crate::ops::matmul) vec4s: usize,
    pub(in crate::ops::matmul) stride: usize,
    /// Index of the form's first input.
    first: usize,
    /// Rows of `P` and vec4s per row.
    residual: Residual,
    /// First column of the folded rows in the branch, and their number.
    folded: Folded,
    /// The up-projection, if the GEMV adds it to split-KV partials.
    up: Option<UpProjection>,
    /// The factors of adapter slots.
    pub(in crate::ops::matmul) slots: Option<SlotPlan>,
}

#[derive(Clone, Copy, Default)]
struct Residual {
    rows: usize,
    vec4s: usize,
}

#[derive(Clone, Copy, Default)]
struct Folded {
    at: usize,
    rows: usize,
}

impl LoraPlan {
    /// `None` if no kernel supports it.
    pub(in crate::ops::matmul) fn new(
        op: &FusedLinear,
        call: &GpuCall<'_>,
        edges: EdgeLayouts,
    ) -> Option<Self> {
        let first = call.inputs() - op.lora.inputs();
        match op.lora {
            LoraForm::None => Some(Self::empty(first)),
            LoraForm::DownRows | LoraForm::DownRowsFolded => Self::down_rows(op, call, edges),
            // In two dispatches: see `two_dispatches`.
            LoraForm::Pair => None,
            LoraForm::Slots => {
                let slots = Some(SlotPlan::fused(call, first)?);
                Some(Self { form: op.lora, slots, ..Self::empty(first) })
            }
            LoraForm::Folded { .. } | LoraForm::Precomputed => Self::up_rows(op, call),
        }
    }

    fn empty(first: usize) -> Self {
        Self {
            form: LoraForm::None,
            dtype: DType::F32,
            rank: 0,
            width: 0,
            vec4s: 0,
            stride: 0,
            first,
            residual: Residual::default(),
            folded: Folded::default(),
            up: None,
            slots: None,
        }
    }

    /// Forms that add `B z` to the output rows.
    fn up_rows(op: &FusedLinear, call: &GpuCall<'_>) -> Option<Self> {
        let first = call.inputs() - op.lora.inputs();
        let (b, rank) = (call.slabs(first + 1), call.input(first + 1).shape.width());
        let known = matches!(b.dtype, DType::F16 | DType::F32);
        let fits =
            known && b.rows.len() == 1 && rank.is_multiple_of(4) && op.rows == RowSelect::All;
        let mut folded = Folded::default();
        let has_z = match (op.lora, &op.prologue) {
            (LoraForm::Folded { first_row }, Prologue::ResidualAdd { branch, next, .. }) => {
                let at = call.input(1).shape.width() - branch.folded + first_row;
                folded = Folded { at, rows: branch.folded / 2 };
                let in_range = first_row + rank <= branch.folded / 2;
                next.is_some() && in_range && call.input(0).shape.rows() == 1
            }
            (form, _) => form == LoraForm::Precomputed,
        };
        let plan = Self {
            form: op.lora,
            dtype: b.dtype,
            rank,
            vec4s: rank / 4,
            stride: b.row_blocks / 4,
            folded,
            ..Self::empty(first)
        };
        (fits && has_z).then_some(plan)
    }

    /// Forms that store `A x` after the output rows.
    fn down_rows(op: &FusedLinear, call: &GpuCall<'_>, edges: EdgeLayouts) -> Option<Self> {
        let first = call.inputs() - op.lora.inputs();
        let (a, rank) = (call.slabs(first), call.input(first).shape.rows());
        let one_slab = call.slabs(op.weight_input()).rows.len() == 1 && a.rows.len() == 1;
        let known = matches!(a.dtype, DType::F16 | DType::F32);
        let x = &call.input(0).shape;
        let fits = one_slab && known && x.rows() == 1 && x.width().is_multiple_of(32);
        let mut residual = Residual::default();
        if op.lora == LoraForm::DownRowsFolded {
            let (h, p) = (&call.input(first + 1).shape, call.slabs(first + 2));
            let packed = p.row_blocks == h.width() && h.width().is_multiple_of(4);
            if p.dtype != a.dtype || p.rows.len() > 1 || h.rows() > 1 || !packed {
                return None;
            }
            let rows = call.input(first + 2).shape.rows();
            residual = Residual { rows, vec4s: p.row_blocks / 4 };
        }
        fits.then(|| Self {
            form: op.lora,
            dtype: a.dtype,
            rank,
            width: x.width(),
            vec4s: rank,
            stride: a.row_blocks / 4,
            residual,
            up: UpProjection::new(call, edges.partials),
            ..Self::empty(first)
        })
    }

    /// The format of the LoRA matrices if the branch may have an up-projection, too: both then share the part that reads them.
    pub(in crate::ops::matmul) fn weight_dtype(&self) -> Option<DType> {
        matches!(self.form, LoraForm::Folded { .. }).then_some(self.dtype)
    }

    /// Workgroup memory in bytes for a workgroup of `lanes` lanes.
    pub(in crate::ops::matmul) fn shared_bytes(&self, lanes: usize) -> usize {
        match self.form {
            LoraForm::None | LoraForm::Pair | LoraForm::Precomputed | LoraForm::Slots => 0,
            LoraForm::Folded { .. } => self.rank * 4,
            LoraForm::DownRows | LoraForm::DownRowsFolded => {
                lanes * 4 + self.up.as_ref().map_or(0, UpProjection::shared_bytes)
            }
        }
    }

    /// Workgroups in addition to those of the weight.
    pub(in crate::ops::matmul) fn groups(&self) -> usize {
        match self.form {
            LoraForm::DownRows | LoraForm::DownRowsFolded => {
                self.rank + self.residual.rows - self.up.as_ref().map_or(0, |up| up.lora.rows)
            }
            _ => 0,
        }
    }

    /// Whether a workgroup of `lanes` lanes suffices.
    pub(in crate::ops::matmul) fn has_lanes(&self, lanes: usize) -> bool {
        match self.form {
            LoraForm::Folded { .. } => self.rank <= lanes,
            _ => true,
        }
    }

    /// Adds its parts and bindings, for these layouts and workgroups of `lanes` lanes.
    pub(in crate::ops::matmul) fn composed(
        &self,
        dispatch: Dispatch,
        edges: EdgeLayouts,
        lanes: usize,
    ) -> Dispatch {
        let second = BufferRef::Slab(self.first + 1, 0);
        let up = |dispatch: Dispatch| {
            dispatch.part(part!("lora_up", "rows")).part(weight_part(self.dtype))
        };
        match self.form {
            LoraForm::None | LoraForm::Pair | LoraForm::Slots => {
                Self::none(self.with_slots(dispatch))
            }
            LoraForm::Precomputed => up(dispatch.part(part!("lora", "precomputed")))
                .read_as("lora_first", BufferRef::Input(self.first))
                .read_as("lora_b", second),
            LoraForm::Folded { .. } => up(dispatch.part(part!("lora", "folded")))
                .constant("RANK", self.rank as u32)
                .constant("FOLDED_AT", self.folded.at as u32)
                .constant("FOLDED_ROWS", self.folded.rows as u32)
                .read_as("lora_b", second),
            LoraForm::DownRows | LoraForm::DownRowsFolded => {
                self.composed_down(dispatch, edges, lanes)
            }
        }
    }

    fn composed_down(&self, dispatch: Dispatch, edges: EdgeLayouts, lanes: usize) -> Dispatch {
        let dispatch = match edges.partials {
            Some(_) => dispatch.part(part!("down_x", "split_kv")),
            None if edges.reads_int8() => dispatch.part(part!("down_x", "int8_pair")),
            None => Layout::stored(edges.x, dispatch.part(part!("down_x", "floats"))),
        };
        let columns = if edges.reads_int8() { Layout::HALF } else { 4 };
        let each = |pieces: usize| pieces.div_ceil(lanes).next_power_of_two().min(MAX_EACH) as u32;
        let dispatch = dispatch
            .part(part!("lora", "down_rows"))
            .part(weight_part(self.dtype))
            .constant("DOWN_EACH", each(self.width / columns))
            .read_as("lora_a", BufferRef::Slab(self.first, 0));
        let dispatch = match self.form {
            LoraForm::DownRowsFolded => dispatch
                .part(part!("residual_down", "present"))
                .constant("RESIDUAL_ROWS", self.residual.rows as u32)
                .constant("RESIDUAL_VEC4S", self.residual.vec4s as u32)
                .constant("RESIDUAL_EACH", each(self.residual.vec4s))
                .read_as("residual_h", BufferRef::Input(self.first + 1))
                .read_as("residual_p", BufferRef::Slab(self.first + 2, 0)),
            _ => dispatch.part(part!("residual_down", "none")),
        };
        match &self.up {
            Some(up) => up.composed(dispatch),
            None => dispatch.part(part!("lora_up", "none")),
        }
    }

    /// Adds the up-projection of adapter slots, if that is the form.
    pub(in crate::ops::matmul) fn with_slots(&self, dispatch: Dispatch) -> Dispatch {
        match &self.slots {
            Some(slots) => slots.added(dispatch),
            None => dispatch,
        }
    }

    /// Adds the parts for no LoRA.
    pub(in crate::ops::matmul) fn none(dispatch: Dispatch) -> Dispatch {
        dispatch.part(part!("lora", "none")).part(part!("lora_up", "none"))
    }
}

/// The part that reads vec4s of a LoRA matrix.
pub(crate) fn weight_part(dtype: DType) -> &'static Part {
    match dtype {
        DType::F16 => part!("lora_weight", "f16"),
        _ => part!("lora_weight", "f32"),
    }
}

/// The part of a residual-add prologue for a folded down-projection.
pub(in crate::ops::matmul) fn folded_part(form: LoraForm) -> &'static Part {
    match form {
        LoraForm::Folded { .. } => part!("folded_down", "present"),
        _ => part!("folded_down", "none"),
    }
}
