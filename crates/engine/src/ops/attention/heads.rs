//! Heads of 64 as bidirectional attention takes them: one dispatch for queries, keys and values.

use bytemuck::NoUninit;

use super::{choice::Sizes, params::word};
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Part, Place},
    graph::Type,
    ops::Columns,
};

static HEADS: Kernel = Kernel { name: "attention/heads", source: include_str!("heads.wgsl") };
static READY: Part = Part { kind: "made", name: "ready", source: include_str!("heads/ready.wgsl") };
static NORMED: Part =
    Part { kind: "made", name: "normed", source: include_str!("heads/normed.wgsl") };
static BLOCKS: Part =
    Part { kind: "kept", name: "blocks", source: include_str!("heads/blocks.wgsl") };
static ROWS: Part = Part { kind: "kept", name: "rows", source: include_str!("heads/rows.wgsl") };

/// Numbers of a head.
pub(super) const WIDTH: usize = 64;
/// Tokens of a block.
pub(super) const BLOCK: usize = 16;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    // Tokens, heads, kv heads and blocks of tokens.
    sizes: [u32; 4],
    eps: f32,
    // First quad and quads of a row, for queries, keys and values.
    places: [[u32; 2]; 3],
}

/// Where queries, keys and values come from: inputs 0, 1 and 2 of an operation.
pub(super) struct Heads {
    /// First quad of their rows, and quads from one to the next.
    places: [[u32; 2]; 3],
    /// What is added to the means of their norms; the next three inputs are the weights of those and the table of cosines and sines.
    eps: Option<f32>,
}

/// How they are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// As halves, in blocks that matrix units load.
    Blocks,
    /// As they are.
    Rows,
}

impl Heads {
    /// Heads that are used as they are.
    pub(super) fn ready(call: &GpuCall<'_>) -> Self {
        let whole = |i: usize| {
            let &[_, heads, width] = call.input(i).shape.dims() else {
                unreachable!("infer has checked the shapes")
            };
            [0, word(heads * width / 4)]
        };
        Self { places: [whole(0), whole(1), whole(2)], eps: None }
    }

    /// Heads that lie in these columns and get their norms.
    pub(super) fn normed(columns: &[Columns; 3], inputs: [&Type; 3], eps: f32) -> Self {
        let place = |i: usize| [word(columns[i].first / 4), word(inputs[i].shape.width() / 4)];
        Self { places: [place(0), place(1), place(2)], eps: Some(eps) }
    }

    /// The dispatch that makes them, with memory for so many blocks of tokens of each head.
    pub(super) fn dispatch(&self, sizes: &Sizes, kept: Kept, blocks: usize) -> (Dispatch, Place) {
        let all = sizes.heads + 2 * sizes.kv_heads;
        let (part, bytes) = match kept {
            Kept::Blocks => (&BLOCKS, 2),
            Kept::Rows => (&ROWS, 4),
        };
        let place = Place::Scratch(0, (all * blocks * BLOCK * WIDTH * bytes) as u64);
        let sizes = [sizes.tokens, sizes.heads, sizes.kv_heads, blocks].map(word);
        let params = Params { sizes, eps: self.eps.unwrap_or(0.0), places: self.places };
        let inputs = |dispatch, inputs: std::ops::Range<usize>| {
            inputs.map(Place::Input).fold(dispatch, Dispatch::read)
        };
        let made = Dispatch::new(&HEADS).part(self.eps.map_or(&READY, |_| &NORMED)).part(part);
        let made = inputs(made.params(&params), 0..3).write(place).grid(blocks, all, 1);
        (if self.eps.is_some() { inputs(made, 3..6) } else { made }, place)
    }
}
