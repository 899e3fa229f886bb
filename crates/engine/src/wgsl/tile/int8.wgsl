// A GEMM tile with int8 matrix units: 128 rows of weights by 64 columns of x, both as int8 hi/lo pairs (two base-256 digits) in blocks of
// 16 by 32. The product of two pairs is 65536 times the high by high product plus 256 times the high by low products; low by low is
// omitted, since it is as small as the rounding error of quantisation.
//
// Blocks are loaded from global memory: only the sums go through workgroup memory, so no subgroup waits for another.
//
// The kernel defines the tile: `Tile` with its first_row, column_at(tile, column) and store(tile, row, column, sum).
//#use matrix
//#use columns

const ROWS: u32 = 128u;
const COLUMNS: u32 = 64u;
const SUBGROUP: u32 = 32u;
// Each subgroup computes 64 rows by 32 columns.
const WG: u32 = 128u;
// Words of one digit plane of a block, and of both.
const DIGITS: u32 = 128u;
const UNIT: u32 = 256u;
// Words of a subgroup's sums.
const SUMS: u32 = 512u;

var<workgroup> sh_y: array<i32, WG / SUBGROUP * SUMS>;

// A subgroup's sums by 16 rows: h and m for its first 16 columns, g and n for the others. h and g hold the high by high products.
// Browsers allow matrices only in function variables.
struct Sums {
    h0: Block,
    h1: Block,
    h2: Block,
    h3: Block,
    g0: Block,
    g1: Block,
    g2: Block,
    g3: Block,
    m0: Block,
    m1: Block,
    m2: Block,
    m3: Block,
    n0: Block,
    n1: Block,
    n2: Block,
    n3: Block,
}

fn compute_tile(tile: Tile, lane: u32) {
    init_units(lane);
    var sums: Sums;
    let row = lane / SUBGROUP / 2u * 64u;
    let column = lane / SUBGROUP % 2u * 32u;
    // Rows and columns out of range are clamped to the last one and not stored.
    let last_rows = (p.rows - 1u) / 16u;
    let rows = min(vec4((tile.first_row + row) / 16u) + vec4(0u, 1u, 2u, 3u), vec4(last_rows));
    let columns = vec2(column_at(tile, column), column_at(tile, column + 16u)) / 16u;
    let w_at = vec4(rows_start(rows.x), rows_start(rows.y), rows_start(rows.z), rows_start(rows.w));
    let x_at = vec2(columns_start(columns.x), columns_start(columns.y));
    for (var unit = 0u; unit < p.row_units; unit++) {
        let at = x_at + vec2(unit * UNIT);
        let x0 = right(at.x);
        let x1 = right(at.y);
        let low0 = right(at.x + DIGITS);
        let low1 = right(at.y + DIGITS);
        let rows_at = w_at + vec4(unit * UNIT);
        let w0 = left(rows_at.x);
        sums.h0 = multiply_add(w0, x0, sums.h0);
        sums.g0 = multiply_add(w0, x1, sums.g0);
        sums.m0 = multiply_add(w0, low0, sums.m0);
        sums.n0 = multiply_add(w0, low1, sums.n0);
        let w1 = left(rows_at.y);
        sums.h1 = multiply_add(w1, x0, sums.h1);
        sums.g1 = multiply_add(w1, x1, sums.g1);
        sums.m1 = multiply_add(w1, low0, sums.m1);
        sums.n1 = multiply_add(w1, low1, sums.n1);
        let w2 = left(rows_at.z);
        sums.h2 = multiply_add(w2, x0, sums.h2);
        sums.g2 = multiply_add(w2, x1, sums.g2);
        sums.m2 = multiply_add(w2, low0, sums.m2);
        sums.n2 = multiply_add(w2, low1, sums.n2);
        let w3 = left(rows_at.w);
        sums.h3 = multiply_add(w3, x0, sums.h3);
        sums.g3 = multiply_add(w3, x1, sums.g3);
        sums.m3 = multiply_add(w3, low0, sums.m3);
        sums.n3 = multiply_add(w3, low1, sums.n3);
        let v0 = left(rows_at.x + DIGITS);
        sums.m0 = multiply_add(v0, x0, sums.m0);
        sums.n0 = multiply_add(v0, x1, sums.n0);
        let v1 = left(rows_at.y + DIGITS);
        sums.m1 = multiply_add(v1, x0, sums.m1);
        sums.n1 = multiply_add(v1, x1, sums.n1);
        let v2 = left(rows_at.z + DIGITS);
        sums.m2 = multiply_add(v2, x0, sums.m2);
        sums.n2 = multiply_add(v2, x1, sums.n2);
        let v3 = left(rows_at.w + DIGITS);
        sums.m3 = multiply_add(v3, x0, sums.m3);
        sums.n3 = multiply_add(v3, x1, sums.n3);
    }
    store_block(tile, sums.h0, sums.m0, row, column, lane);
    store_block(tile, sums.h1, sums.m1, row + 16u, column, lane);
    store_block(tile, sums.h2, sums.m2, row + 32u, column, lane);
    store_block(tile, sums.h3, sums.m3, row + 48u, column, lane);
    store_block(tile, sums.g0, sums.n0, row, column + 16u, lane);
    store_block(tile, sums.g1, sums.n1, row + 16u, column + 16u, lane);
    store_block(tile, sums.g2, sums.n2, row + 32u, column + 16u, lane);
    store_block(tile, sums.g3, sums.n3, row + 48u, column + 16u, lane);
}

// A block goes through workgroup memory, where its elements can be indexed: a lane takes every other element of a row.
fn store_block(tile: Tile, high: Block, middle: Block, row: u32, column: u32, lane: u32) {
    let ours = lane / SUBGROUP * SUMS;
    stage_block(high, ours);
    stage_block(middle, ours + 256u);
    workgroupBarrier();
    let r = row + lane % 16u;
    // Scales out of range are not used.
    let scale = row_scale(min(tile.first_row + r, p.rows - 1u));
    for (var i = 0u; i < 8u; i++) {
        let c = column + i * 2u + lane % SUBGROUP / 16u;
        let at = ours + i * SUBGROUP + lane % SUBGROUP;
        let sum = f32(sh_y[at]) * 65536.0 + f32(sh_y[at + 256u]) * 256.0;
        store(tile, r, c, sum * scale * column_scale(column_at(tile, c)));
    }
    // The next block overwrites this one.
    workgroupBarrier();
}
