//! Packs queries, keys and values with heads of 64 in one dispatch, in the layout that encoder flash attention loads.

use bytemuck::NoUninit;

use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Part},
    graph::Type,
    ops::{
        Columns,
        attention::problem::{Problem, word},
    },
};

static PACK: Kernel = Kernel { name: "attention/encoder_pack", source: include_str!("pack.wgsl") };
static UNCHANGED: Part =
    Part { kind: "transform", name: "transform/none", source: include_str!("transform/none.wgsl") };
static NORM_ROPE_2D: Part = Part {
    kind: "transform",
    name: "transform/norm_rope_2d",
    source: include_str!("transform/norm_rope_2d.wgsl"),
};
static BLOCKS: Part =
    Part { kind: "layout", name: "layout/blocks", source: include_str!("layout/blocks.wgsl") };
static ROWS: Part =
    Part { kind: "layout", name: "layout/rows", source: include_str!("layout/rows.wgsl") };

/// Elements per head.
pub(super) const WIDTH: usize = 64;
/// Tokens per block.
pub(super) const BLOCK: usize = 16;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    // Tokens, heads, kv heads and blocks of tokens.
    sizes: [u32; 4],
    eps: f32,
    // First vec4 and vec4s of a row, for queries, keys and values.
    columns: [[u32; 2]; 3],
}

/// The source of queries, keys and values: inputs 0, 1 and 2 of an op.
pub(in super::super) struct Heads {
    /// First vec4 of their rows, and the stride between rows in vec4s.
    columns: [[u32; 2]; 3],
    /// If the kernel norms and rotates them: the eps of the norms. Inputs 3, 4 and 5 are then the norm weights of queries and keys and the RoPE
    /// table.
    eps: Option<f32>,
}

/// The layout of packed heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// As f16, in blocks that matrix units load.
    Blocks,
    /// As f32, row-major.
    Rows,
}

impl Heads {
    /// Heads that are already normed and rotated.
    pub(in super::super) fn prepared(call: &GpuCall<'_>) -> Self {
        let whole = |i: usize| {
            let &[_, heads, width] = call.input(i).shape.dims() else {
                unreachable!("infer has checked the shapes")
            };
            [0, word(heads * width / 4)]
        };
        Self { columns: [whole(0), whole(1), whole(2)], eps: None }
    }

    /// Raw heads in these columns, which the kernel norms and rotates.
    pub(in super::super) fn raw(columns: &[Columns; 3], inputs: [&Type; 3], eps: f32) -> Self {
        let place = |i: usize| [word(columns[i].first / 4), word(inputs[i].shape.width() / 4)];
        Self { columns: [place(0), place(1), place(2)], eps: Some(eps) }
    }

    /// The dispatch that packs them, with space for `blocks` blocks of tokens per head.
    pub(super) fn pack(
        &self,
        problem: &Problem,
        layout: Layout,
        blocks: usize,
    ) -> (Dispatch, BufferRef) {
        let all = problem.heads + 2 * problem.kv_heads;
        let (layout, bytes) = match layout {
            Layout::Blocks => (&BLOCKS, 2),
            Layout::Rows => (&ROWS, 4),
        };
        let packed = BufferRef::Scratch(0, (all * blocks * BLOCK * WIDTH * bytes) as u64);
        let sizes = [problem.tokens, problem.heads, problem.kv_heads, blocks].map(word);
        let params = Params { sizes, eps: self.eps.unwrap_or(0.0), columns: self.columns };
        let read = |dispatch, inputs: std::ops::Range<usize>| {
            inputs.map(BufferRef::Input).fold(dispatch, Dispatch::read)
        };
        let transform = if self.eps.is_some() { &NORM_ROPE_2D } else { &UNCHANGED };
        let dispatch = Dispatch::new(&PACK).part(transform).part(layout).params(&params);
        let dispatch = read(dispatch, 0..3).write(packed).grid(blocks, all, 1);
        (if self.eps.is_some() { read(dispatch, 3..6) } else { dispatch }, packed)
    }
}
