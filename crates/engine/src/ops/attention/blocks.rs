//! Heads of 64 in blocks, as matrix units load them: a launch that makes them, and one that lets everyone see everyone.

use bytemuck::NoUninit;

use super::{choice::Sizes, params::word};
use crate::{
    gpu::{DeviceFacts, Dispatch, GpuCall, Kernel, MatrixUnits, Part, Place},
    graph::Type,
    ops::Columns,
};

static HEADS: Kernel = Kernel { name: "attention/heads", source: include_str!("heads.wgsl") };
static OWN_ROWS: Kernel =
    Kernel { name: "attention/own_rows", source: include_str!("own_rows.wgsl") };
static READY: Part = Part { kind: "made", name: "ready", source: include_str!("heads/ready.wgsl") };
static NORMED: Part =
    Part { kind: "made", name: "normed", source: include_str!("heads/normed.wgsl") };
static WGPU16: Part =
    Part { kind: "matrix", name: "heads/wgpu16", source: include_str!("units/wgpu16.wgsl") };
static WRITTEN: Part =
    Part { kind: "matrix", name: "heads/written", source: include_str!("units/written.wgsl") };

/// Numbers of a head.
const WIDTH: usize = 64;
/// Tokens of a block.
const BLOCK: usize = 16;
/// Rows that a workgroup makes, and keys it takes at a time, as in the kernel.
const ROWS: usize = 32;
const KEYS: usize = 64;

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
}

/// The matrix units that heads of this width can be made for.
pub(super) fn units(width: usize, facts: &DeviceFacts) -> Option<MatrixUnits> {
    facts.matrix.filter(|_| width == WIDTH)
}

/// Everyone sees everyone.
pub(super) fn everyone(sizes: &Sizes, heads: &Heads, units: MatrixUnits) -> Vec<Dispatch> {
    let blocks = sizes.tokens.next_multiple_of(KEYS) / BLOCK;
    let all = sizes.heads + 2 * sizes.kv_heads;
    let place = Place::Scratch(0, (all * blocks * BLOCK * WIDTH * 2) as u64);
    let sizes_of = [sizes.tokens, sizes.heads, sizes.kv_heads, blocks].map(word);
    let params = Params { sizes: sizes_of, eps: heads.eps.unwrap_or(0.0), places: heads.places };
    let inputs = |dispatch, inputs: std::ops::Range<usize>| {
        inputs.map(Place::Input).fold(dispatch, Dispatch::read)
    };
    let made = Dispatch::new(&HEADS).part(heads.eps.map_or(&READY, |_| &NORMED)).params(&params);
    let made = inputs(made, 0..3).write(place).grid(blocks, all, 1);
    let made = if heads.eps.is_some() { inputs(made, 3..6) } else { made };
    let rows = Dispatch::new(&OWN_ROWS)
        .part(match units {
            MatrixUnits::Wgpu16 => &WGPU16,
            MatrixUnits::Written => &WRITTEN,
        })
        .params(&sizes_of)
        .read(place)
        .write(Place::Output(0))
        .grid(sizes.heads, sizes.tokens.div_ceil(ROWS), 1);
    vec![made, rows]
}
