//! Encoder flash attention with matrix units: one dispatch packs the heads into blocks that the units load, one attends.

use super::pack::{BLOCK, Heads, Layout, WIDTH};
use crate::{
    gpu::{BufferRef, DeviceFacts, Dispatch, Kernel, MatrixUnits, Part},
    ops::attention::problem::{Problem, word},
};

static FLASH_MATRIX: Kernel =
    Kernel { name: "attention/encoder_flash_matrix", source: include_str!("flash_matrix.wgsl") };
static WGPU16: Part =
    Part { kind: "matrix", name: "encoder/wgpu16", source: include_str!("matrix/wgpu16.wgsl") };
static CHROMIUM16: Part = Part {
    kind: "matrix",
    name: "encoder/chromium16",
    source: include_str!("matrix/chromium16.wgsl"),
};
static WRITTEN: Part =
    Part { kind: "matrix", name: "encoder/written", source: include_str!("matrix/written.wgsl") };

/// Rows per workgroup, and keys per tile, as in the kernel.
const ROWS: usize = 32;
const KEYS: usize = 64;

/// The matrix units of a device, if the kernel supports heads of this width.
pub(in super::super) fn units(width: usize, facts: &DeviceFacts) -> Option<MatrixUnits> {
    facts.matrix.filter(|_| width == WIDTH)
}

/// Both dispatches.
pub(in super::super) fn dispatches(
    problem: &Problem,
    heads: &Heads,
    units: MatrixUnits,
) -> Vec<Dispatch> {
    let blocks = problem.tokens.next_multiple_of(KEYS) / BLOCK;
    let (pack, packed) = heads.pack(problem, Layout::Blocks, blocks);
    let attend = Dispatch::new(&FLASH_MATRIX)
        .part(match units {
            MatrixUnits::Wgpu16 => &WGPU16,
            MatrixUnits::Chromium16 => &CHROMIUM16,
            MatrixUnits::Emulated => &WRITTEN,
        })
        .params(&[problem.tokens, problem.heads, problem.kv_heads, blocks].map(word))
        .read(packed)
        .write(BufferRef::Output(0))
        .grid(problem.heads, problem.tokens.div_ceil(ROWS), 1);
    vec![pack, attend]
}
