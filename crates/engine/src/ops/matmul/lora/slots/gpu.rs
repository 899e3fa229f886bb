//! Dispatches of slot LoRA: inside a GEMV, which adds `B z` before its epilogue, or as two separate operations.

use bytemuck::NoUninit;

use super::super::weight_part;
use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Slabs},
    graph::Type,
    ops::parts,
};

static ROWS_DOWN: Kernel =
    Kernel { name: "matmul/slot_rows_down", source: include_str!("rows_down.wgsl") };
static ROWS_UP: Kernel =
    Kernel { name: "matmul/slot_rows_up", source: include_str!("rows_up.wgsl") };

/// The scratch buffer of `z`: another than those of staged x and split-KV partials.
const SCRATCH: usize = 2;
/// Lanes of a workgroup of the separate down-projection.
const LANES: u32 = 64;
/// Outputs of a workgroup of the separate up-projection.
const OUTPUTS: usize = 64;

/// Sizes of the factors, and the op's inputs that hold them.
pub(in crate::ops::matmul) struct SlotPlan {
    a: Slabs,
    b: Slabs,
    rank: usize,
    slots: usize,
    tokens: usize,
    /// Words of a sequence.
    words: usize,
    /// Input index of `A`; `B` and the sequences follow.
    first: usize,
}

impl SlotPlan {
    fn new(call: &GpuCall<'_>, first: usize) -> Self {
        let [a, b, sequences] = [0, 1, 2].map(|i: usize| call.input(first + i));
        let rank = b.shape.width();
        Self {
            a: call.slabs(first),
            b: call.slabs(first + 1),
            rank,
            slots: a.shape.rows() / rank,
            tokens: sequences.shape.rows(),
            words: sequences.shape.width(),
            first,
        }
    }

    /// For a GEMV; `None` if a factor has several slabs.
    pub(in crate::ops::matmul) fn fused(call: &GpuCall<'_>, first: usize) -> Option<Self> {
        let plan = Self::new(call, first);
        (plan.a.rows.len() == 1 && plan.b.rows.len() == 1).then_some(plan)
    }

    /// The adapter of each token and its `z`, `[t, 4 + rank]`.
    pub(in crate::ops::matmul) fn z(&self) -> BufferRef {
        BufferRef::Scratch(SCRATCH, (self.tokens * (self.rank + 4) * 4) as u64)
    }

    fn rows(&self) -> usize {
        self.b.rows.last().map_or(0, |rows| rows.end) / self.slots
    }

    /// Binds the sequences.
    fn with_row(&self, dispatch: Dispatch) -> Dispatch {
        dispatch
            .part(part!("slot_row", "sequences"))
            .constant("SEQUENCE_WORDS", word(self.words))
            .constant("SLOTS", word(self.slots))
            .read_as("sequences", BufferRef::Input(self.first + 2))
    }

    /// Binds `z` and a slab of `B`.
    fn with_sum(&self, dispatch: Dispatch, slab: usize) -> Dispatch {
        dispatch
            .part(part!("slot_sum", "rows"))
            .part(weight_part(self.b.dtype))
            .constant("SLOT_VEC4S", word(self.rank / 4))
            .constant("SLOT_STRIDE", word(self.b.row_blocks / 4))
            .read_as("slot_z", self.z())
            .read_as("slot_b", BufferRef::Slab(self.first + 1, slab))
    }

    /// Adds the up-projection to a GEMV.
    pub(in crate::ops::matmul) fn added(&self, dispatch: Dispatch) -> Dispatch {
        let dispatch = dispatch.part(part!("slot_lora", "added"));
        self.with_sum(dispatch, 0).constant("SLOT_ROWS", word(self.rows()))
    }

    /// Sizes of the down-projection in a dispatch whose workgroups have `teams` teams, one per row of `A`.
    pub(in crate::ops::matmul) fn down(&self, dispatch: Dispatch, teams: usize) -> Dispatch {
        dispatch
            .part(weight_part(self.a.dtype))
            .constant("SLOT_RANK", word(self.rank))
            .constant("SLOT_STRIDE", word(self.a.row_blocks / 4))
            .grid(self.rank.div_ceil(teams), self.tokens, 1)
    }

    /// Binds `A` and the sequences.
    pub(in crate::ops::matmul) fn with_a(&self, dispatch: Dispatch) -> Dispatch {
        self.with_row(dispatch.read_as("slot_a", BufferRef::Slab(self.first, 0)))
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct DownParams {
    width: u32,
    rank: u32,
    stride: u32,
    first: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct UpParams {
    outputs: u32,
    rows: u32,
    first: u32,
    count: u32,
}

/// The dispatches of the separate operation: one for each slab of `A`, then of `B`.
pub(super) fn dispatches(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let plan = SlotPlan::new(call, 2);
    let (base, x): (&Type, &Type) = (call.input(0), call.input(1));
    let down = plan.a.rows.iter().enumerate().map(|(slab, rows)| {
        let dispatch = Dispatch::new(&ROWS_DOWN)
            .part(parts::reduce(call.facts))
            .part(weight_part(plan.a.dtype))
            .constant("WG", LANES)
            .params(&DownParams {
                width: word(x.shape.width()),
                rank: word(plan.rank),
                stride: word(plan.a.row_blocks / 4),
                first: word(rows.start),
            })
            .grid(rows.len(), plan.tokens, 1)
            .read(BufferRef::Slab(plan.first, slab))
            .read(BufferRef::Input(1))
            .write(plan.z());
        plan.with_row(dispatch)
    });
    let up = plan.b.rows.iter().enumerate().map(|(slab, rows)| {
        let dispatch = Dispatch::new(&ROWS_UP)
            .params(&UpParams {
                outputs: word(base.shape.len()),
                rows: word(base.shape.width()),
                first: word(rows.start),
                count: word(rows.len()),
            })
            .grid_over(base.shape.len().div_ceil(OUTPUTS))
            .read(BufferRef::Input(0))
            .write(BufferRef::Output(0));
        plan.with_sum(dispatch, slab)
    });
    down.chain(up).collect()
}

fn word(n: usize) -> u32 {
    u32::try_from(n).expect("sizes of one weight fit 32 bits")
}
