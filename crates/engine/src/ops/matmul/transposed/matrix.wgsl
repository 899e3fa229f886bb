// x[t, k] = sum over r of y[t, r] * W[r, k]     with matrix units: one workgroup per tile of ROWS columns k by COLUMNS positions t
//#use weights
//#use quant
//#use tile

struct Params {
//#use slab
}

@group(0) @binding(0) var<uniform> p: Params;
// The result, or with split-K the partial sums of each chunk of rows.
@group(0) @binding(4) var<storage, read_write> sums: array<f32>;

struct Tile {
    first_unit: u32,
    first_column: u32,
    chunk: u32,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let across = (p.count + COLUMNS - 1u) / COLUMNS;
    let tiles = across * ((p.row_units + UNITS - 1u) / UNITS);
    let index = grid_index(group) % tiles;
    // Neighbouring workgroups share weights. Those past the last tile store nothing.
    compute_tile(Tile(index / across * UNITS, index % across * COLUMNS, grid_index(group) / tiles), lane);
}

fn column_at(tile: Tile, column: u32) -> u32 {
    return min(tile.first_column + column, p.count - 1u);
}

fn store(tile: Tile, row: u32, column: u32, sum: f32) {
    let unit = tile.first_unit + row / 32u;
    let c = tile.first_column + column;
    if unit >= p.row_units || c >= p.count || tile.chunk >= CHUNKS {
        return;
    }
    let k = unit_column(unit, row % 32u / 4u) + row % 4u;
    // Rows of plain floats may end inside a vec4.
    if k < p.width {
        sums[(tile.chunk * p.count + c) * p.width + k] = sum;
    }
}
