//! Without matrix units, many columns times a quantised weight: it is dequantised first, a part at a time, for register tiles. Tiles that
//! read quantised weights decode them again for every 64 columns, and have no registers left for as large a tile.

use std::ops::Range;

use bytemuck::NoUninit;
use rullama_gguf::DType;

use super::{Buffers, Gemm, Tile};
use crate::{
    gpu::{BufferRef, DeviceFacts, Dispatch, GpuCall, Kernel, Slabs},
    graph::Shape,
    ops::{
        parts::{WEIGHTS, quant},
        slab::{SLAB, SlabParams},
        split_k::{add_up, chunks, parts_at},
    },
};

static DEQUANTISE: Kernel =
    Kernel { name: "matmul/dequantise", source: include_str!("dequantise.wgsl") };

/// The tile: the largest register tile.
const TILE: Tile = Tile::Scalar { columns: 64 };
/// Maximum bytes of a part, if a binding may have as many.
const MAX_BYTES: u64 = 96 << 20;
/// Minimum terms of a split-K chunk.
const LEAST_CHUNK: usize = 1024;
/// Parts of a transposed weight begin at a multiple of this many units, which is one of every format's blocks.
const BLOCK_UNITS: usize = 8;
const UNIT: usize = 32;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    slab: SlabParams,
    start: u32,
    len: u32,
    stride: u32,
}

/// A part of the dequantised weight: rows of the matrix that tiles read.
struct RowPart {
    slab: usize,
    rows: Range<usize>,
}

impl Gemm<'_> {
    /// The dispatches for a dequantised weight; `None` if a transposed weight would take many parts, each too small for a large device.
    /// For each part there is one that dequantises and one that multiplies; then one that adds up split-K chunks, if there are any.
    pub(in crate::ops::matmul) fn dequantised(
        &self,
        slabs: &Slabs,
        is_transposed: bool,
        call: &GpuCall<'_>,
    ) -> Option<Vec<Dispatch>> {
        let weight = &call.input(self.weight).shape;
        // The matrix that tiles read.
        let shape = match is_transposed {
            true => Shape::from([weight.width(), weight.rows()]),
            false => weight.clone(),
        };
        let stride = shape.width().next_multiple_of(UNIT);
        let parts = match is_transposed {
            true => column_parts(slabs, stride, call.facts)?,
            false => row_parts(slabs, stride, call.facts),
        };
        let most = parts.iter().map(|part| part.rows.len()).max()?;
        let shared = chunks(TILE.groups(self.x.rows(), most), stride, LEAST_CHUNK);
        let (results, output) = (self.x.rows() * shape.rows(), BufferRef::Output(self.output));
        let sums = if shared > 1 { parts_at(1, results, shared) } else { output };
        let weights = BufferRef::Scratch(0, (most * stride * 4) as u64);
        let mut dispatches = Vec::new();
        for RowPart { slab, rows } in parts {
            let params = Params {
                slab: SlabParams::new(slabs, slab, weight, 0),
                start: word(if is_transposed {
                    rows.start / UNIT
                } else {
                    rows.start - slabs.rows[slab].start
                }),
                len: word(if is_transposed { rows.len() / UNIT } else { rows.len() }),
                stride: word(stride),
            };
            let dequantise = Dispatch::new(&DEQUANTISE)
                .part(match is_transposed {
                    true => part!("dequantised", "columns"),
                    false => part!("dequantised", "rows"),
                })
                .part(SLAB)
                .part(WEIGHTS)
                .part(quant(slabs.dtype))
                .params(&params)
                .read(BufferRef::Slab(self.weight, slab))
                .write(weights)
                .grid_over((rows.len() * stride / UNIT).div_ceil(256));
            // Like the only slab of an F32 weight, but for its place among the rows of the result.
            let part = Slabs {
                dtype: DType::F32,
                file_blocks: shape.width(),
                row_blocks: stride,
                rows: vec![rows],
            };
            let buffers = Buffers { weights, columns: BufferRef::Input(0), sums };
            dispatches.push(dequantise);
            dispatches.push(self.multiply((TILE, shared), (&part, 0, &shape), buffers));
        }
        dispatches.extend((shared > 1).then(|| add_up(sums, results, shared, output)));
        Some(dispatches)
    }
}

fn word(n: usize) -> u32 {
    u32::try_from(n).expect("sizes of one weight fit 32 bits")
}

/// Parts of `all` rows of about the same size, at most `MAX_BYTES` each; their starts are multiples of `step`.
fn split(
    all: Range<usize>,
    stride: usize,
    step: usize,
    facts: &DeviceFacts,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let most = facts.binding_bytes.min(MAX_BYTES) as usize;
    let count = (all.len() * stride * 4).div_ceil(most).max(1);
    let len = all.len().div_ceil(count).next_multiple_of(step);
    let end = all.end;
    all.step_by(len.max(1)).map(move |start| start..(start + len).min(end))
}

/// Parts of a weight's rows, each of one slab.
fn row_parts(slabs: &Slabs, stride: usize, facts: &DeviceFacts) -> Vec<RowPart> {
    let parts = |(slab, all): (usize, &Range<usize>)| {
        split(all.clone(), stride, TILE.rows(), facts).map(move |rows| RowPart { slab, rows })
    };
    slabs.rows.iter().enumerate().flat_map(parts).collect()
}

/// Parts of a weight's columns: at most two, of a weight with one slab.
fn column_parts(slabs: &Slabs, stride: usize, facts: &DeviceFacts) -> Option<Vec<RowPart>> {
    let columns = 0..slabs.row_units() * UNIT;
    let parts = split(columns, stride, BLOCK_UNITS * UNIT, facts);
    let parts: Vec<RowPart> = parts.map(|rows| RowPart { slab: 0, rows }).collect();
    (slabs.rows.len() == 1 && parts.len() <= 2).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::{DType, DeviceFacts, MAX_BYTES, RowPart, Slabs, column_parts, row_parts};

    fn slabs(row_blocks: usize, ends: &[usize]) -> Slabs {
        let starts = [0].into_iter().chain(ends.iter().copied());
        let rows = starts.zip(ends).map(|(start, end)| start..*end).collect();
        Slabs { dtype: DType::Q4_K, file_blocks: row_blocks, row_blocks, rows }
    }

    fn ranges(parts: &[RowPart]) -> Vec<(usize, usize, usize)> {
        parts.iter().map(|part| (part.slab, part.rows.start, part.rows.end)).collect()
    }

    #[test]
    fn parts_of_rows_are_of_one_slab_and_fit() {
        let floor = DeviceFacts::floor();
        assert_eq!(ranges(&row_parts(&slabs(6, &[12_288]), 1536, &floor)), [(0, 0, 12_288)]);
        let parts = row_parts(&slabs(8, &[20_000, 30_000]), 2048, &floor);
        assert_eq!(ranges(&parts), [(0, 0, 10_048), (0, 10_048, 20_000), (1, 20_000, 30_000)]);
        assert!(parts.iter().all(|part| (part.rows.len() * 2048 * 4) as u64 <= MAX_BYTES));
    }

    #[test]
    fn parts_of_columns_are_few() {
        let floor = DeviceFacts::floor();
        let parts = |row_blocks, ends: &[usize]| {
            let stride = ends[0].next_multiple_of(32);
            column_parts(&slabs(row_blocks, ends), stride, &floor).map(|parts| ranges(&parts))
        };
        assert_eq!(parts(6, &[12_288]), Some(vec![(0, 0, 1536)]));
        assert_eq!(parts(10, &[16_384]), Some(vec![(0, 0, 1280), (0, 1280, 2560)]));
        // The LM head; several slabs.
        assert_eq!(parts(6, &[65_536]), None);
        assert_eq!(parts(6, &[8192, 12_288]), None);
    }
}
