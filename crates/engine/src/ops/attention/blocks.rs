//! Bidirectional attention by matrix units, which load heads of 64 in blocks: a dispatch that makes those, and one of attention.

use super::{
    choice::Sizes,
    heads::{BLOCK, Heads, Kept, WIDTH},
    params::word,
};
use crate::gpu::{DeviceFacts, Dispatch, Kernel, MatrixUnits, Part, Place};

static OWN_ROWS: Kernel =
    Kernel { name: "attention/own_rows", source: include_str!("own_rows.wgsl") };
static WGPU16: Part =
    Part { kind: "matrix", name: "heads/wgpu16", source: include_str!("units/wgpu16.wgsl") };
static CHROMIUM16: Part = Part {
    kind: "matrix",
    name: "heads/chromium16",
    source: include_str!("units/chromium16.wgsl"),
};
static WRITTEN: Part =
    Part { kind: "matrix", name: "heads/written", source: include_str!("units/written.wgsl") };

/// Rows that a workgroup makes, and keys it takes at a time, as in the kernel.
const ROWS: usize = 32;
const KEYS: usize = 64;

/// The matrix units that heads of this width can be made for.
pub(super) fn units(width: usize, facts: &DeviceFacts) -> Option<MatrixUnits> {
    facts.matrix.filter(|_| width == WIDTH)
}

/// Bidirectional attention.
pub(super) fn bidirectional(sizes: &Sizes, heads: &Heads, units: MatrixUnits) -> Vec<Dispatch> {
    let blocks = sizes.tokens.next_multiple_of(KEYS) / BLOCK;
    let (made, place) = heads.dispatch(sizes, Kept::Blocks, blocks);
    let rows = Dispatch::new(&OWN_ROWS)
        .part(match units {
            MatrixUnits::Wgpu16 => &WGPU16,
            MatrixUnits::Chromium16 => &CHROMIUM16,
            MatrixUnits::Written => &WRITTEN,
        })
        .params(&[sizes.tokens, sizes.heads, sizes.kv_heads, blocks].map(word))
        .read(place)
        .write(Place::Output(0))
        .grid(sizes.heads, sizes.tokens.div_ceil(ROWS), 1);
    vec![made, rows]
}
