//! Without matrix units, many columns times a quantised weight: x is transposed and the weight dequantised, a part at a time, so that k is
//! the outer dimension of both (k-major); tiles then copy what they read. Tiles that read quantised weights decode them again for every 64 columns, and have no
//! registers left for as large a tile.

use std::ops::Range;

use bytemuck::NoUninit;

use super::Gemm;
use crate::{
    gpu::{BufferRef, DeviceFacts, Dispatch, GpuCall, Kernel, Slabs},
    ops::{
        parts::{self, WEIGHTS, quant},
        slab::{SLAB, SlabParams},
        split_k::{add_up, chunks, parts_at},
    },
};

static TRANSPOSE: Kernel =
    Kernel { name: "matmul/transpose", source: include_str!("transpose.wgsl") };
static DEQUANTISE: Kernel =
    Kernel { name: "matmul/dequantise", source: include_str!("dequantise.wgsl") };
static K_MAJOR: Kernel = Kernel { name: "matmul/k_major", source: include_str!("k_major.wgsl") };

/// Rows and columns of a tile.
const TILE_ROWS: usize = 128;
const TILE_COLUMNS: usize = 64;
/// Maximum bytes of a part, if a binding may have as many.
const MAX_BYTES: u64 = 96 << 20;
/// Minimum terms of a split-K chunk.
const LEAST_CHUNK: usize = 512;
/// Parts of a weight's columns begin at a multiple of this many units, which is one of every format's blocks.
const BLOCK_UNITS: usize = 8;
const UNIT: usize = 32;
/// Rows and columns of a block that is transposed by a workgroup.
const BLOCK: usize = 32;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct TransposeParams {
    columns: u32,
    width: u32,
    depth: u32,
    stride: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct DequantiseParams {
    slab: SlabParams,
    start_row: u32,
    row_count: u32,
    start_unit: u32,
    unit_count: u32,
    stride: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    depth: u32,
    row_vec4s: u32,
    column_vec4s: u32,
    rows: u32,
    first_row: u32,
    all_rows: u32,
    columns: u32,
}

/// A part of the dequantised weight: results of the matmul, which are rows of the weight, or columns if it is transposed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ResultPart {
    slab: usize,
    results: Range<usize>,
}

impl ResultPart {
    /// Floats per k: whole tiles.
    fn stride(&self) -> usize {
        self.results.len().next_multiple_of(TILE_ROWS)
    }
}

impl Gemm<'_> {
    /// The dispatches for a dequantised weight; `None` if a transposed weight would take many parts, each too small for a large device.
    /// One transposes x; for each part there is one that dequantises and one that multiplies; then one adds up split-K chunks, if there are
    /// any.
    pub(in crate::ops::matmul) fn dequantised(
        &self,
        slabs: &Slabs,
        is_transposed: bool,
        call: &GpuCall<'_>,
    ) -> Option<Vec<Dispatch>> {
        let weight = &call.input(self.weight).shape;
        let (terms, all_rows) = match is_transposed {
            true => (weight.rows(), weight.width()),
            false => (slabs.row_units() * UNIT, weight.rows()),
        };
        let depth = terms.next_multiple_of(UNIT);
        let parts = match is_transposed {
            true => column_parts(slabs, depth, call.facts)?,
            false => row_parts(slabs, depth, call.facts),
        };
        let most = parts.iter().map(ResultPart::stride).max()?;
        let columns = self.x.rows();
        let across = columns.div_ceil(TILE_COLUMNS);
        let shared = chunks(most / TILE_ROWS * across, depth, LEAST_CHUNK);
        let (results, output) = (columns * all_rows, BufferRef::Output(self.output));
        let weights = BufferRef::Scratch(0, (most * depth * 4) as u64);
        let x = BufferRef::Scratch(1, (depth * across * TILE_COLUMNS * 4) as u64);
        let sums = if shared > 1 { parts_at(2, results, shared) } else { output };
        let mut dispatches = vec![self.transpose(depth, x)];
        for part in parts {
            let params = Params {
                depth: word(depth),
                row_vec4s: word(part.stride() / 4),
                column_vec4s: word(across * TILE_COLUMNS / 4),
                rows: word(part.results.len()),
                first_row: word(part.results.start),
                all_rows: word(all_rows),
                columns: word(columns),
            };
            let multiply = Dispatch::new(&K_MAJOR)
                .part(parts::register_sums())
                .constant("CHUNKS", shared as u32)
                .params(&params)
                .read(weights)
                .read(x)
                .write(sums)
                .grid_over(part.stride() / TILE_ROWS * across * shared);
            dispatches.push(self.dequantise((slabs, &part), is_transposed, weights, call));
            dispatches.push(multiply);
        }
        dispatches.extend((shared > 1).then(|| add_up(sums, results, shared, output)));
        Some(dispatches)
    }

    /// Transposes the columns at input 0.
    fn transpose(&self, depth: usize, to: BufferRef) -> Dispatch {
        let stride = self.x.rows().next_multiple_of(TILE_COLUMNS);
        let params = TransposeParams {
            columns: word(self.x.rows()),
            width: word(self.x.width()),
            depth: word(depth),
            stride: word(stride),
        };
        Dispatch::new(&TRANSPOSE)
            .params(&params)
            .read(BufferRef::Input(0))
            .write(to)
            .grid_over(stride / BLOCK * depth.div_ceil(BLOCK))
    }

    /// Dequantises a part of the weight.
    fn dequantise(
        &self,
        (slabs, part): (&Slabs, &ResultPart),
        is_transposed: bool,
        to: BufferRef,
        call: &GpuCall<'_>,
    ) -> Dispatch {
        let (weight, slab) = (&call.input(self.weight).shape, part.slab);
        let dispatch = Dispatch::new(&DEQUANTISE);
        let (dispatch, rows, units, groups) = if is_transposed {
            let rows = 0..weight.rows().next_multiple_of(UNIT);
            let units = part.results.start / UNIT..part.results.end / UNIT;
            let groups = (rows.len() * units.len()).div_ceil(256);
            (dispatch.part(part!("dequantised", "rows")), rows, units, groups)
        } else {
            let first = slabs.rows[slab].start;
            let rows = part.results.start - first..part.results.end - first;
            let units = 0..slabs.row_units();
            let groups = part.stride() / 32 * units.len().div_ceil(8);
            (dispatch.part(part!("dequantised", "columns")), rows, units, groups)
        };
        let params = DequantiseParams {
            slab: SlabParams::new(slabs, slab, weight, 0),
            start_row: word(rows.start),
            row_count: word(rows.len()),
            start_unit: word(units.start),
            unit_count: word(units.len()),
            stride: word(part.stride()),
        };
        dispatch
            .part(SLAB)
            .part(WEIGHTS)
            .part(quant(slabs.dtype))
            .params(&params)
            .read(BufferRef::Slab(self.weight, slab))
            .write(to)
            .grid_over(groups)
    }
}

fn word(n: usize) -> u32 {
    u32::try_from(n).expect("sizes of one weight fit 32 bits")
}

/// Parts of `all` results of about the same size, at most `MAX_BYTES` each; their starts are multiples of `step`.
fn split(
    all: Range<usize>,
    depth: usize,
    step: usize,
    facts: &DeviceFacts,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let most = facts.binding_bytes.min(MAX_BYTES) as usize / (depth * 4);
    let count = all.len().div_ceil((most / step * step).max(step)).max(1);
    let len = all.len().div_ceil(count).next_multiple_of(step);
    let end = all.end;
    all.step_by(len.max(1)).map(move |start| start..(start + len).min(end))
}

/// Parts of a weight's rows, each of one slab.
fn row_parts(slabs: &Slabs, depth: usize, facts: &DeviceFacts) -> Vec<ResultPart> {
    let parts = |(slab, all): (usize, &Range<usize>)| {
        let parts = split(all.clone(), depth, TILE_ROWS, facts);
        parts.map(move |results| ResultPart { slab, results })
    };
    slabs.rows.iter().enumerate().flat_map(parts).collect()
}

/// Parts of a weight's columns: at most two, of a weight with one slab.
fn column_parts(slabs: &Slabs, depth: usize, facts: &DeviceFacts) -> Option<Vec<ResultPart>> {
    let columns = 0..slabs.row_units() * UNIT;
    let parts = split(columns, depth, BLOCK_UNITS * UNIT, facts);
    let parts: Vec<ResultPart> = parts.map(|results| ResultPart { slab: 0, results }).collect();
    (slabs.rows.len() == 1 && parts.len() <= 2).then_some(parts)
}

#[cfg(test)]
mod tests {
    use rullama_gguf::DType;

    use super::{DeviceFacts, MAX_BYTES, ResultPart, Slabs, column_parts, row_parts};

    fn slabs(row_blocks: usize, ends: &[usize]) -> Slabs {
        let starts = [0].into_iter().chain(ends.iter().copied());
        let rows = starts.zip(ends).map(|(start, end)| start..*end).collect();
        Slabs { dtype: DType::Q4_K, file_blocks: row_blocks, row_blocks, rows }
    }

    fn ranges(parts: &[ResultPart]) -> Vec<(usize, usize, usize)> {
        parts.iter().map(|part| (part.slab, part.results.start, part.results.end)).collect()
    }

    #[test]
    fn parts_of_rows_are_of_one_slab_and_fit() {
        let floor = DeviceFacts::floor();
        assert_eq!(ranges(&row_parts(&slabs(6, &[12_288]), 1536, &floor)), [(0, 0, 12_288)]);
        let parts = row_parts(&slabs(8, &[20_000, 30_000]), 2048, &floor);
        assert_eq!(ranges(&parts), [(0, 0, 10_112), (0, 10_112, 20_000), (1, 20_000, 30_000)]);
        assert!(parts.iter().all(|part| (part.stride() * 2048 * 4) as u64 <= MAX_BYTES));
    }

    #[test]
    fn parts_of_columns_are_few() {
        let floor = DeviceFacts::floor();
        let parts = |row_blocks, ends: &[usize]| {
            let depth = ends[0].next_multiple_of(32);
            column_parts(&slabs(row_blocks, ends), depth, &floor).map(|parts| ranges(&parts))
        };
        assert_eq!(parts(6, &[12_288]), Some(vec![(0, 0, 1536)]));
        assert_eq!(parts(10, &[16_384]), Some(vec![(0, 0, 1280), (0, 1280, 2560)]));
        // The LM head; several slabs.
        assert_eq!(parts(6, &[65_536]), None);
        assert_eq!(parts(6, &[8192, 12_288]), None);
    }
}
