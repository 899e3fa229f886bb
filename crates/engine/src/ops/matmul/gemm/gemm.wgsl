// y[c, r] = sum over k of W[r, k] * x[c, k]     GEMM: one workgroup per tile of rows and columns
//#use weights
//#use quant
//#use tile
//#use clamp

struct Params {
//#use slab
    // Ranges of rows: end, version of x, clamp.
    end0: u32,
    end1: u32,
    end2: u32,
    version0: u32,
    version1: u32,
    version2: u32,
    least0: f32,
    least1: f32,
    least2: f32,
    most0: f32,
    most1: f32,
    most2: f32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

struct Tile {
    first_row: u32,
    first_column: u32,
    // First column of the version of x that its rows read: the same for all.
    version_at: u32,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tiles = (p.count + COLUMNS - 1u) / COLUMNS;
    // Neighbouring workgroups share weights. Those past the last tile store nothing.
    let index = grid_index(group);
    let row = index / tiles * ROWS;
    let version_at = version_of(p.first_row + row) * ((p.count + 15u) / 16u * 16u);
    compute_tile(Tile(row, index % tiles * COLUMNS, version_at), lane);
}

// Rows and columns past the last one read the last one and are not stored.
fn row_units_at(tile: Tile, row: u32) -> u32 {
    return min(tile.first_row + row, p.rows - 1u) * p.row_units;
}

fn column_at(tile: Tile, column: u32) -> u32 {
    return tile.version_at + min(tile.first_column + column, p.count - 1u);
}

fn store(tile: Tile, row: u32, column: u32, sum: f32) {
    let r = tile.first_row + row;
    let c = tile.first_column + column;
    if r < p.rows && c < p.count {
        y[c * p.all_rows + p.first_row + r] = clamped(p.first_row + r, sum);
    }
}
