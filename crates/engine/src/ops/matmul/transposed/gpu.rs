//! Tiles: with matrix units if the device has any and the weight has a single slab; without them, for many positions, with a dequantised
//! weight if it has a single slab; otherwise one dispatch per slab, each adding to the results of the one before.

use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Slabs},
    ops::{
        matmul::{
            gemm::{ClampRanges, Gemm, Tile},
            select::Shape,
        },
        parts::{WEIGHTS, quant},
        slab::{SLAB, SlabParams},
        split_k::{add_up, chunks, parts_at},
    },
};

static SCALAR: Kernel = Kernel { name: "matmul/transposed", source: include_str!("scalar.wgsl") };
static MATRIX: Kernel =
    Kernel { name: "matmul/transposed_matrix", source: include_str!("matrix.wgsl") };

/// Units of a tile: 64 columns.
const TILE_UNITS: usize = 2;
/// Possible positions of a tile.
const TILE_POSITIONS: [usize; 3] = [16, 32, 64];
/// Minimum positions for matrix units.
const LEAST_MATRIX: usize = 9;
/// Minimum rows of a split-K chunk.
const LEAST_CHUNK: usize = 1024;

pub(super) fn forward(call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (t, slabs) = (call.input(0).shape.rows(), call.slabs(1));
    if slabs.rows.len() == 1 && t >= LEAST_MATRIX {
        // The tile's rows are columns of the weight here.
        let sharing = |groups| chunks(groups, call.input(1).shape.rows(), LEAST_CHUNK);
        let tile = Tile::shared(t, slabs.row_units() * 32, sharing, call.facts);
        if let Some(dispatches) = by_matrix_units(call, &slabs, tile) {
            return dispatches;
        }
        let x = &call.input(0).shape;
        let gemm = Gemm { x, weight: 1, output: 0, clamp: ClampRanges::default() };
        if Shape::of_slab(x, &slabs, 0).is_dequantised(tile)
            && let Some(dispatches) = gemm.dequantised(&slabs, true, call)
        {
            return dispatches;
        }
    }
    plain(call, &slabs)
}

fn by_matrix_units(call: &GpuCall<'_>, slabs: &Slabs, tile: Tile) -> Option<Vec<Dispatch>> {
    let (y, weight) = (&call.input(0).shape, &call.input(1).shape);
    let (prepared, columns) = tile.prepare_plain(y, call.facts)?;
    let groups = tile.groups(y.rows(), slabs.row_units() * 32);
    let (results, output) = (y.rows() * weight.width(), BufferRef::Output(0));
    let shared = chunks(groups, weight.rows(), LEAST_CHUNK);
    // The first scratch buffer holds the prepared columns.
    let partials = if shared > 1 { parts_at(1, results, shared) } else { output };
    let matmul = tile
        .dispatch_transposed(&MATRIX, (slabs.dtype, groups * shared))?
        .part(SLAB)
        .part(WEIGHTS)
        .part(quant(slabs.dtype))
        .constant("CHUNKS", shared as u32)
        .params(&SlabParams::new(slabs, 0, weight, y.rows()))
        .read(BufferRef::Slab(1, 0))
        .read(columns)
        .write(partials)
        .grid_over(groups * shared);
    let sum = (shared > 1).then(|| add_up(partials, results, shared, output));
    Some([prepared, matmul].into_iter().chain(sum).collect())
}

fn plain(call: &GpuCall<'_>, slabs: &Slabs) -> Vec<Dispatch> {
    let (t, weight) = (call.input(0).shape.rows(), &call.input(1).shape);
    let positions = tile_positions(t);
    let groups = slabs.row_units().div_ceil(TILE_UNITS) * t.div_ceil(positions);
    let (results, output) = (t * weight.width(), BufferRef::Output(0));
    // Several slabs add to the same sums, so there is no split-K.
    let one = slabs.rows.len() == 1;
    let shared = if one { chunks(groups, weight.rows(), LEAST_CHUNK) } else { 1 };
    let sums = if shared > 1 { parts_at(0, results, shared) } else { output };
    let matmuls = (0..slabs.rows.len()).map(|slab| {
        Dispatch::new(&SCALAR)
            .part(SLAB)
            .part(WEIGHTS)
            .part(quant(slabs.dtype))
            .constant("POSITIONS", positions as u32)
            .constant("WG", positions as u32 * 4)
            .constant("ADD", u32::from(slab > 0))
            .constant("CHUNKS", shared as u32)
            .params(&SlabParams::new(slabs, slab, weight, t))
            .read(BufferRef::Slab(1, slab))
            .read(BufferRef::Input(0))
            .write(sums)
            .grid_over(groups * shared)
    });
    let sum = (shared > 1).then(|| add_up(sums, results, shared, output));
    matmuls.chain(sum).collect()
}

/// The smallest tile that holds all positions, or the largest.
fn tile_positions(t: usize) -> usize {
    TILE_POSITIONS.into_iter().find(|tile| t <= *tile).unwrap_or(TILE_POSITIONS[2])
}

#[cfg(test)]
mod tests {
    #[test]
    fn tiles_hold_the_positions() {
        for (t, tile) in [(1, 16), (16, 16), (17, 32), (33, 64), (512, 64)] {
            assert_eq!(super::tile_positions(t), tile, "{t} positions");
        }
    }
}
