// A tile of a product, by plain arithmetic: ROWS rows of weights by COLUMNS columns of x. A unit of each row and column is brought to
// workgroup memory at a time, weights as numbers.
//
// The kernel says where a tile lies: `Tile`, row_units_at(tile, row), column_at(tile, column) and store(tile, row, column, sum). The
// block is what a lane makes: it says how large tiles are, and has the `Sums` and the `Brought` columns of a lane.
//#use columns
//#use block

// Four neighbours in k each: [group][row] and [group][column].
var<workgroup> sh_w: array<vec4<f32>, ROWS * 8u>;
var<workgroup> sh_x: array<vec4<f32>, COLUMNS * 8u>;

fn make_tile(tile: Tile, lane: u32) {
    var sums = Sums();
    // There are lanes enough to bring a unit of each row.
    let start = row_units_at(tile, lane % ROWS);
    var weights = load_unit(start);
    var columns = load_columns(tile, 0u, lane);
    for (var unit = 0u; unit < p.row_units; unit++) {
        if lane < ROWS {
            put_weights(weights, lane);
        }
        put_columns(columns, lane);
        workgroupBarrier();
        // The next unit is on its way while this one is multiplied.
        let next = min(unit + 1u, p.row_units - 1u);
        if lane < ROWS {
            weights = load_unit(start + next);
        }
        columns = load_columns(tile, next, lane);
        for (var g = 0u; g < 8u; g++) {
            sums = add_group(sums, g, lane);
        }
        // The next unit is written over this one.
        workgroupBarrier();
    }
    store_sums(tile, lane, sums);
}

// Four rows with one column: four neighbours in k, one after the other, whatever the block is. Then all blocks make the same bits.
fn four_rows(sums: vec4<f32>, w: mat4x4<f32>, x: vec4<f32>) -> vec4<f32> {
    return sums + w[0] * x.x + w[1] * x.y + w[2] * x.z + w[3] * x.w;
}

// Four rows of a group, by their neighbours in k.
fn rows_at(at: u32) -> mat4x4<f32> {
    return transpose(mat4x4<f32>(sh_w[at], sh_w[at + ROW_STEP], sh_w[at + 2u * ROW_STEP], sh_w[at + 3u * ROW_STEP]));
}

// Neighbouring lanes write neighbouring groups of one column; without the exchange they would all meet in one memory bank.
fn place(g: u32, column: u32) -> u32 {
    return g * COLUMNS + (column ^ g);
}

// Eight neighbours read the unit of one column.
fn load_column(tile: Tile, unit: u32, i: u32) -> vec4<f32> {
    return x4(column_at(tile, i / 8u), unit_column(unit, i % 8u));
}

fn put_column(column: vec4<f32>, i: u32) {
    sh_x[place(i % 8u, i / 8u)] = column;
}

fn put_weights(weights: array<vec4<f32>, 8>, row: u32) {
    sh_w[row] = weights[0];
    sh_w[row + ROWS] = weights[1];
    sh_w[row + ROWS * 2u] = weights[2];
    sh_w[row + ROWS * 3u] = weights[3];
    sh_w[row + ROWS * 4u] = weights[4];
    sh_w[row + ROWS * 5u] = weights[5];
    sh_w[row + ROWS * 6u] = weights[6];
    sh_w[row + ROWS * 7u] = weights[7];
}

// Rows ROW_STEP apart of one column.
fn store4(tile: Tile, row: u32, column: u32, sums: vec4<f32>) {
    store(tile, row, column, sums.x);
    store(tile, row + ROW_STEP, column, sums.y);
    store(tile, row + 2u * ROW_STEP, column, sums.z);
    store(tile, row + 3u * ROW_STEP, column, sums.w);
}
