// A GEMM tile without matrix units: 64 rows of weights by COLUMNS columns of x; a lane computes 4 by 4 of it. One unit of each row and
// column is staged in workgroup memory as f32 at a time.
//
// The kernel defines the tile: `Tile`, row_units_at(tile, row), column_at(tile, column) and store(tile, row, column, sum).
//#use columns

const ROWS: u32 = 64u;
const ROW_LANES: u32 = 16u;
// 16, 32 or 64; sixteen adjacent lanes cover the rows, so that a lane has four columns.
override COLUMNS: u32 = 64u;
override WG: u32 = COLUMNS * 4u;

// vec4s of four consecutive k: [group][row] and [group][column].
var<workgroup> sh_w: array<vec4<f32>, ROWS * 8u>;
var<workgroup> sh_x: array<vec4<f32>, COLUMNS * 8u>;

fn compute_tile(tile: Tile, lane: u32) {
    let row = lane % ROW_LANES;
    let column = lane / ROW_LANES;
    let step = COLUMNS / 4u;
    var s0 = vec4(0.0);
    var s1 = vec4(0.0);
    var s2 = vec4(0.0);
    var s3 = vec4(0.0);
    // There are enough lanes to load one unit of each row, and two vec4s of each column.
    let start = row_units_at(tile, lane % ROWS);
    var weights = load_unit(start);
    var first = load_column(tile, 0u, lane);
    var second = load_column(tile, 0u, lane + WG);
    for (var unit = 0u; unit < p.row_units; unit++) {
        if lane < ROWS {
            stage_weights(weights, lane);
        }
        sh_x[place(lane % 8u, lane / 8u)] = first;
        sh_x[place(lane % 8u, (lane + WG) / 8u)] = second;
        workgroupBarrier();
        // The next unit is loaded while this one is multiplied.
        let next = min(unit + 1u, p.row_units - 1u);
        if lane < ROWS {
            weights = load_unit(start + next);
        }
        first = load_column(tile, next, lane);
        second = load_column(tile, next, lane + WG);
        for (var g = 0u; g < 8u; g++) {
            let at = g * ROWS + row;
            let w = mat4x4<f32>(sh_w[at], sh_w[at + ROW_LANES], sh_w[at + 2u * ROW_LANES], sh_w[at + 3u * ROW_LANES]);
            s0 += sh_x[place(g, column)] * w;
            s1 += sh_x[place(g, column + step)] * w;
            s2 += sh_x[place(g, column + step * 2u)] * w;
            s3 += sh_x[place(g, column + step * 3u)] * w;
        }
        // The next unit overwrites this one.
        workgroupBarrier();
    }
    store4(tile, row, column, s0);
    store4(tile, row, column + step, s1);
    store4(tile, row, column + step * 2u, s2);
    store4(tile, row, column + step * 3u, s3);
}

// Adjacent lanes write adjacent vec4s of one column; without the xor they would all hit one memory bank.
fn place(g: u32, column: u32) -> u32 {
    return g * COLUMNS + (column ^ g);
}

// Eight adjacent lanes read the unit of one column.
fn load_column(tile: Tile, unit: u32, i: u32) -> vec4<f32> {
    return x4(column_at(tile, i / 8u), unit_column(unit, i % 8u));
}

fn stage_weights(weights: array<vec4<f32>, 8>, row: u32) {
    sh_w[row] = weights[0];
    sh_w[row + ROWS] = weights[1];
    sh_w[row + ROWS * 2u] = weights[2];
    sh_w[row + ROWS * 3u] = weights[3];
    sh_w[row + ROWS * 4u] = weights[4];
    sh_w[row + ROWS * 5u] = weights[5];
    sh_w[row + ROWS * 6u] = weights[6];
    sh_w[row + ROWS * 7u] = weights[7];
}

// Stores rows 16 apart of one column.
fn store4(tile: Tile, row: u32, column: u32, sums: vec4<f32>) {
    store(tile, row, column, sums.x);
    store(tile, row + ROW_LANES, column, sums.y);
    store(tile, row + 2u * ROW_LANES, column, sums.z);
    store(tile, row + 3u * ROW_LANES, column, sums.w);
}
