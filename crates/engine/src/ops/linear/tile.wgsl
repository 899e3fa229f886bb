// y[c, r] = sum over k of W[r, k] * x[c, k]     for many columns: a workgroup makes a tile of 64 rows by COLUMNS columns, a lane 4 by 4
// of it. A unit of each row and column is brought to workgroup memory at a time, weights as numbers.
//#use weights
//#use quant
//#use columns

const ROWS: u32 = 64u;
// 16, 32 or 64; sixteen lanes side by side make the rows, so that a lane has four columns.
override COLUMNS: u32 = 64u;
override WG: u32 = COLUMNS * 4u;

struct Params {
    plane0: u32,
    plane1: u32,
    plane2: u32,
    plane3: u32,
    width: u32,
    row_units: u32,
    rows: u32,
    first_row: u32,
    all_rows: u32,
    count: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

// Four neighbours in k each: [group][row] and [group][column].
var<workgroup> sh_w: array<vec4<f32>, ROWS * 8u>;
var<workgroup> sh_x: array<vec4<f32>, COLUMNS * 8u>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tiles = (p.count + COLUMNS - 1u) / COLUMNS;
    // Neighbouring workgroups share their weights.
    let first_column = grid_index(group) % tiles * COLUMNS;
    let first_row = grid_index(group) / tiles * ROWS;
    if first_row >= p.rows {
        return;
    }
    let row = lane % 16u;
    let column = lane / 16u;
    let step = COLUMNS / 4u;
    var sums0 = vec4(0.0);
    var sums1 = vec4(0.0);
    var sums2 = vec4(0.0);
    var sums3 = vec4(0.0);
    for (var unit = 0u; unit < p.row_units; unit++) {
        bring_weights(first_row, unit, lane);
        bring_columns(first_column, unit, lane);
        workgroupBarrier();
        for (var g = 0u; g < 8u; g++) {
            let w0 = sh_w[g * ROWS + row];
            let w1 = sh_w[g * ROWS + row + 16u];
            let w2 = sh_w[g * ROWS + row + 32u];
            let w3 = sh_w[g * ROWS + row + 48u];
            let x0 = sh_x[place(g, column)];
            let x1 = sh_x[place(g, column + step)];
            let x2 = sh_x[place(g, column + step * 2u)];
            let x3 = sh_x[place(g, column + step * 3u)];
            sums0 += vec4(dot(w0, x0), dot(w1, x0), dot(w2, x0), dot(w3, x0));
            sums1 += vec4(dot(w0, x1), dot(w1, x1), dot(w2, x1), dot(w3, x1));
            sums2 += vec4(dot(w0, x2), dot(w1, x2), dot(w2, x2), dot(w3, x2));
            sums3 += vec4(dot(w0, x3), dot(w1, x3), dot(w2, x3), dot(w3, x3));
        }
        // The next unit is written over this one.
        workgroupBarrier();
    }
    store(first_row + row, first_column + column, sums0);
    store(first_row + row, first_column + column + step, sums1);
    store(first_row + row, first_column + column + step * 2u, sums2);
    store(first_row + row, first_column + column + step * 3u, sums3);
}

// Neighbouring lanes write neighbouring groups of one column; without the exchange they would all meet in one memory bank.
fn place(g: u32, column: u32) -> u32 {
    return g * COLUMNS + (column ^ g);
}

// What lies behind the last row or column is read as that one and not stored.
fn bring_weights(first: u32, unit: u32, lane: u32) {
    for (var row = lane; row < ROWS; row += WG) {
        let weights = load_unit(min(first + row, p.rows - 1u) * p.row_units + unit);
        sh_w[row] = weights[0];
        sh_w[row + ROWS] = weights[1];
        sh_w[row + ROWS * 2u] = weights[2];
        sh_w[row + ROWS * 3u] = weights[3];
        sh_w[row + ROWS * 4u] = weights[4];
        sh_w[row + ROWS * 5u] = weights[5];
        sh_w[row + ROWS * 6u] = weights[6];
        sh_w[row + ROWS * 7u] = weights[7];
    }
}

fn bring_columns(first: u32, unit: u32, lane: u32) {
    for (var i = lane; i < COLUMNS * 8u; i += WG) {
        let g = i % 8u;
        sh_x[place(g, i / 8u)] = x4(min(first + i / 8u, p.count - 1u), unit_column(unit, g));
    }
}

// Rows 16 apart of one column.
fn store(row: u32, column: u32, sums: vec4<f32>) {
    if column >= p.count {
        return;
    }
    let at = column * p.all_rows + p.first_row + row;
    if row < p.rows {
        y[at] = sums.x;
    }
    if row + 16u < p.rows {
        y[at + 16u] = sums.y;
    }
    if row + 32u < p.rows {
        y[at + 32u] = sums.z;
    }
    if row + 48u < p.rows {
        y[at + 48u] = sums.w;
    }
}
