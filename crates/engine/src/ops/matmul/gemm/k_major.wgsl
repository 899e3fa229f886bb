// y[c, r] = sum over k of w[k, r] * x[k, c]     one workgroup per tile of 128 rows by 64 columns, 8 × 8 results per lane
// k is the outer dimension of both matrices (k-major here), which are padded to whole tiles: lanes load adjacent vec4s and stage them as
// they are.
// If there are too few tiles, CHUNKS workgroups share one, each with a part of k (split-K).
override CHUNKS: u32 = 1u;

struct Params {
    // Extent of k, padded to multiples of DEPTH.
    depth: u32,
    // vec4s per k of both matrices.
    row_vec4s: u32,
    column_vec4s: u32,
    // Results: rows from first_row on, of all_rows, and columns.
    rows: u32,
    first_row: u32,
    all_rows: u32,
    columns: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const ROW_VEC4S: u32 = 2u;
const COLUMN_VEC4S: u32 = 2u;
const ROW_LANES: u32 = 16u;
const COLUMN_LANES: u32 = 8u;
const WG: u32 = ROW_LANES * COLUMN_LANES;
const DEPTH: u32 = 16u;
// vec4s of a tile's rows and columns per k, and the k that its lanes load at a time.
const TILE_ROWS: u32 = ROW_LANES * ROW_VEC4S;
const TILE_COLUMNS: u32 = COLUMN_LANES * COLUMN_VEC4S;
const W_STEP: u32 = WG / TILE_ROWS;
const X_STEP: u32 = WG / TILE_COLUMNS;

// One entry more than lanes, so that adjacent entries do not hit the same memory bank.
var<workgroup> sh_w: array<array<array<vec4<f32>, ROW_LANES + 1u>, DEPTH>, ROW_VEC4S>;
var<workgroup> sh_x: array<array<array<vec4<f32>, COLUMN_LANES + 1u>, DEPTH>, COLUMN_VEC4S>;

//#use register_sums

struct Tile {
    first_row: u32,
    first_column: u32,
    chunk: u32,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let across = p.column_vec4s / TILE_COLUMNS;
    let index = grid_index(group) / CHUNKS;
    let tile = Tile(index / across * TILE_ROWS * 4u, index % across * TILE_COLUMNS * 4u, grid_index(group) % CHUNKS);
    // A grid of several rows has workgroups past the last tile.
    if tile.first_row / 4u >= p.row_vec4s {
        return;
    }
    let place = place_of(lane);
    let share = (p.depth / DEPTH + CHUNKS - 1u) / CHUNKS * DEPTH;
    let first = min(tile.chunk * share, p.depth);
    let end = min(first + share, p.depth);
    // What a lane loads: one vec4 of rows for every W_STEP-th k, one of columns for every X_STEP-th.
    let w_k = lane / TILE_ROWS;
    let x_k = lane / TILE_COLUMNS;
    let w_at = tile.first_row / 4u + lane % TILE_ROWS;
    let x_at = tile.first_column / 4u + lane % TILE_COLUMNS;
    let w_step = W_STEP * p.row_vec4s;
    let x_step = X_STEP * p.column_vec4s;
    var w_from = (first + w_k) * p.row_vec4s + w_at;
    var x_from = (first + x_k) * p.column_vec4s + x_at;
    var w0 = w[w_from];
    var w1 = w[w_from + w_step];
    var w2 = w[w_from + 2u * w_step];
    var w3 = w[w_from + 3u * w_step];
    var x0 = x[x_from];
    var x1 = x[x_from + x_step];
    let w_vec4 = lane % TILE_ROWS / ROW_LANES;
    let w_lane = lane % ROW_LANES;
    let x_vec4 = lane % TILE_COLUMNS / COLUMN_LANES;
    let x_lane = lane % COLUMN_LANES;
    for (var k = first; k < end; k += DEPTH) {
        sh_w[w_vec4][w_k][w_lane] = w0;
        sh_w[w_vec4][w_k + W_STEP][w_lane] = w1;
        sh_w[w_vec4][w_k + 2u * W_STEP][w_lane] = w2;
        sh_w[w_vec4][w_k + 3u * W_STEP][w_lane] = w3;
        sh_x[x_vec4][x_k][x_lane] = x0;
        sh_x[x_vec4][x_k + X_STEP][x_lane] = x1;
        workgroupBarrier();
        // The next elements are loaded while these are multiplied.
        let next = min(k + DEPTH, end - DEPTH);
        w_from = (next + w_k) * p.row_vec4s + w_at;
        x_from = (next + x_k) * p.column_vec4s + x_at;
        w0 = w[w_from];
        w1 = w[w_from + w_step];
        w2 = w[w_from + 2u * w_step];
        w3 = w[w_from + 3u * w_step];
        x0 = x[x_from];
        x1 = x[x_from + x_step];
        multiply_slice(place);
        // The next elements overwrite these.
        workgroupBarrier();
    }
    store_sums(tile, place);
}

fn row_of(four: u32, i: u32) -> u32 {
    return four * 4u + i;
}

fn store(tile: Tile, row: u32, column: u32, sum: f32) {
    let r = tile.first_row + row;
    let c = tile.first_column + column;
    if r < p.rows && c < p.columns {
        y[(tile.chunk * p.columns + c) * p.all_rows + p.first_row + r] = sum;
    }
}
