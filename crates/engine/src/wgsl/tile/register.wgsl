// A GEMM tile without matrix units, accumulated in registers: 64 rows by COLUMNS columns, over slices of 32 of k. Half a slice of each row
// and column is in workgroup memory at a time, as vec4s of four rows or four columns, so that a lane reads its rows and columns of one k
// by two to four loads for up to 64 multiplications. More workgroup memory would leave fewer workgroups to a multiprocessor.
//
// All sizes are constants in the source, and lanes are the last array dimension: one bounds check of a lane's index then serves all k.
//
// The kernel defines the tile: `Tile`, column_at(tile, column), store(tile, row, column, sum) and what the `tile_weights` part needs,
// which defines slices(tile), weights_start(tile, lane), load_slice(start, slice, lane), stage_weights(loaded, half, lane),
// column4(column, slice, part, half) and row_of(four, i).
//#use tile_shape
//#use tile_weights

const ROWS: u32 = 64u;
// Lanes along rows and along columns, and in total.
const ROW_LANES: u32 = ROWS / (4u * ROW_VEC4S);
const COLUMN_LANES: u32 = COLUMNS / (4u * COLUMN_VEC4S);
const WG: u32 = ROW_LANES * COLUMN_LANES;
// Depth in k of the data in workgroup memory.
const DEPTH: u32 = 16u;

// One entry more than lanes, so that adjacent entries do not hit the same memory bank.
var<workgroup> sh_w: array<array<array<vec4<f32>, ROW_LANES + 1u>, DEPTH>, ROW_VEC4S>;
var<workgroup> sh_x: array<array<array<vec4<f32>, COLUMN_LANES + 1u>, DEPTH>, COLUMN_VEC4S>;

// A lane's sums: vec4s of four rows, by columns; b are its second four rows.
var<private> a0: vec4<f32>;
var<private> a1: vec4<f32>;
var<private> a2: vec4<f32>;
var<private> a3: vec4<f32>;
var<private> a4: vec4<f32>;
var<private> a5: vec4<f32>;
var<private> a6: vec4<f32>;
var<private> a7: vec4<f32>;
var<private> b0: vec4<f32>;
var<private> b1: vec4<f32>;
var<private> b2: vec4<f32>;
var<private> b3: vec4<f32>;
var<private> b4: vec4<f32>;
var<private> b5: vec4<f32>;
var<private> b6: vec4<f32>;
var<private> b7: vec4<f32>;

// Four of k for each of four columns.
struct Columns {
    x0: vec4<f32>,
    x1: vec4<f32>,
    x2: vec4<f32>,
    x3: vec4<f32>,
}

fn compute_tile(tile: Tile, lane: u32) {
    // The part of the tile that a lane computes: 32 lanes cover 8 vec4s of rows by 4 of columns, and each 8 of them 4 by 2, which minimises
    // the distinct values read at a time.
    let row = lane / 32u % (ROW_LANES / 8u) * 8u + lane % 16u / 2u;
    let column = lane / 32u / (ROW_LANES / 8u) * 4u + lane % 32u / 16u * 2u + lane % 2u;
    // What a lane loads: four elements of each of four columns, and as much of the weights.
    let loads_columns = COLUMNS == ROWS || lane_vec4(lane) < COLUMNS / 4u;
    let four = min(lane_vec4(lane), COLUMNS / 4u - 1u);
    let part = lane_part(lane);
    let weights_at = weights_start(tile, lane);
    let columns_at = vec4(
        column_at(tile, column_of(four, 0u)), column_at(tile, column_of(four, 1u)),
        column_at(tile, column_of(four, 2u)), column_at(tile, column_of(four, 3u)),
    );
    let span = slices(tile);
    // The next elements are loaded while these are multiplied. Weights are loaded once for both halves, so that the data common to a
    // block is decoded once.
    var weights = load_slice(weights_at, span.x, lane);
    var columns = load_columns(columns_at, span.x, part, 0u);
    for (var slice = span.x; slice < span.y; slice++) {
        stage_weights(weights, 0u, lane);
        if loads_columns {
            stage_columns(columns, four, part);
        }
        workgroupBarrier();
        if loads_columns {
            columns = load_columns(columns_at, slice, part, 1u);
        }
        multiply_half(row, column);
        // The next half overwrites this one.
        workgroupBarrier();
        stage_weights(weights, 1u, lane);
        if loads_columns {
            stage_columns(columns, four, part);
        }
        workgroupBarrier();
        let next = min(slice + 1u, span.y - 1u);
        weights = load_slice(weights_at, next, lane);
        if loads_columns {
            columns = load_columns(columns_at, next, part, 0u);
        }
        multiply_half(row, column);
        workgroupBarrier();
    }
    store_column(tile, row, column_of(column, 0u), a0, b0);
    store_column(tile, row, column_of(column, 1u), a1, b1);
    store_column(tile, row, column_of(column, 2u), a2, b2);
    store_column(tile, row, column_of(column, 3u), a3, b3);
    if COLUMN_VEC4S > 1u {
        let second = column + COLUMN_LANES;
        store_column(tile, row, column_of(second, 0u), a4, b4);
        store_column(tile, row, column_of(second, 1u), a5, b5);
        store_column(tile, row, column_of(second, 2u), a6, b6);
        store_column(tile, row, column_of(second, 3u), a7, b7);
    }
}

// The vec4 of rows or columns that a lane loads, and which four of a half's k: eight adjacent lanes hit different memory banks.
fn lane_vec4(lane: u32) -> u32 {
    return lane / 16u * 4u + lane / 2u % 4u;
}

fn lane_part(lane: u32) -> u32 {
    return lane / 8u % 2u * 2u + lane % 2u;
}

// Column i of four.
fn column_of(four: u32, i: u32) -> u32 {
    return four * 4u + i;
}

fn load_columns(at: vec4<u32>, slice: u32, part: u32, half: u32) -> Columns {
    return Columns(
        column4(at.x, slice, part, half), column4(at.y, slice, part, half),
        column4(at.z, slice, part, half), column4(at.w, slice, part, half),
    );
}

fn stage_columns(c: Columns, four: u32, part: u32) {
    let q = four / COLUMN_LANES;
    let l = four % COLUMN_LANES;
    sh_x[q][part * 4u][l] = vec4(c.x0.x, c.x1.x, c.x2.x, c.x3.x);
    sh_x[q][part * 4u + 1u][l] = vec4(c.x0.y, c.x1.y, c.x2.y, c.x3.y);
    sh_x[q][part * 4u + 2u][l] = vec4(c.x0.z, c.x1.z, c.x2.z, c.x3.z);
    sh_x[q][part * 4u + 3u][l] = vec4(c.x0.w, c.x1.w, c.x2.w, c.x3.w);
}

// Unrolled by hand, because not every compiler unrolls a loop.
fn multiply_half(row: u32, column: u32) {
    multiply(0u, row, column);
    multiply(1u, row, column);
    multiply(2u, row, column);
    multiply(3u, row, column);
    multiply(4u, row, column);
    multiply(5u, row, column);
    multiply(6u, row, column);
    multiply(7u, row, column);
    multiply(8u, row, column);
    multiply(9u, row, column);
    multiply(10u, row, column);
    multiply(11u, row, column);
    multiply(12u, row, column);
    multiply(13u, row, column);
    multiply(14u, row, column);
    multiply(15u, row, column);
}

// Accumulates the products of one k. A lane without second vec4s reads its first ones again, which costs nothing.
fn multiply(k: u32, row: u32, column: u32) {
    let w0 = sh_w[0][k][row];
    let w1 = sh_w[ROW_VEC4S - 1u][k][row];
    let x0 = sh_x[0][k][column];
    let x1 = sh_x[COLUMN_VEC4S - 1u][k][column];
    a0 = fma(vec4(x0.x), w0, a0);
    a1 = fma(vec4(x0.y), w0, a1);
    a2 = fma(vec4(x0.z), w0, a2);
    a3 = fma(vec4(x0.w), w0, a3);
    if ROW_VEC4S > 1u {
        b0 = fma(vec4(x0.x), w1, b0);
        b1 = fma(vec4(x0.y), w1, b1);
        b2 = fma(vec4(x0.z), w1, b2);
        b3 = fma(vec4(x0.w), w1, b3);
    }
    if COLUMN_VEC4S > 1u {
        a4 = fma(vec4(x1.x), w0, a4);
        a5 = fma(vec4(x1.y), w0, a5);
        a6 = fma(vec4(x1.z), w0, a6);
        a7 = fma(vec4(x1.w), w0, a7);
        if ROW_VEC4S > 1u {
            b4 = fma(vec4(x1.x), w1, b4);
            b5 = fma(vec4(x1.y), w1, b5);
            b6 = fma(vec4(x1.z), w1, b6);
            b7 = fma(vec4(x1.w), w1, b7);
        }
    }
}

fn store_column(tile: Tile, row: u32, column: u32, first: vec4<f32>, second: vec4<f32>) {
    store_four(tile, row, column, first);
    if ROW_VEC4S > 1u {
        store_four(tile, row + ROW_LANES, column, second);
    }
}

fn store_four(tile: Tile, four: u32, column: u32, sums: vec4<f32>) {
    store(tile, row_of(four, 0u), column, sums.x);
    store(tile, row_of(four, 1u), column, sums.y);
    store(tile, row_of(four, 2u), column, sums.z);
    store(tile, row_of(four, 3u), column, sums.w);
}
