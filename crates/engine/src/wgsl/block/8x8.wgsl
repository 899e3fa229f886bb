// A lane makes 8 rows by 8 columns of a tile of 128 by 64: twice the work for each number that it takes from workgroup memory, and four
// times the registers.
const ROWS: u32 = 128u;
// Between two rows of a lane, and between two columns.
const ROW_STEP: u32 = 16u;
const COLUMN_STEP: u32 = 8u;
const COLUMNS: u32 = 64u;
const WG: u32 = 128u;

// Columns 0 to 7 with the first four rows (a) and the others (b).
struct Sums {
    a0: vec4<f32>,
    a1: vec4<f32>,
    a2: vec4<f32>,
    a3: vec4<f32>,
    a4: vec4<f32>,
    a5: vec4<f32>,
    a6: vec4<f32>,
    a7: vec4<f32>,
    b0: vec4<f32>,
    b1: vec4<f32>,
    b2: vec4<f32>,
    b3: vec4<f32>,
    b4: vec4<f32>,
    b5: vec4<f32>,
    b6: vec4<f32>,
    b7: vec4<f32>,
}

struct Brought {
    x0: vec4<f32>,
    x1: vec4<f32>,
    x2: vec4<f32>,
    x3: vec4<f32>,
}

fn load_columns(tile: Tile, unit: u32, lane: u32) -> Brought {
    return Brought(
        load_column(tile, unit, lane), load_column(tile, unit, lane + WG),
        load_column(tile, unit, lane + WG * 2u), load_column(tile, unit, lane + WG * 3u),
    );
}

fn put_columns(columns: Brought, lane: u32) {
    put_column(columns.x0, lane);
    put_column(columns.x1, lane + WG);
    put_column(columns.x2, lane + WG * 2u);
    put_column(columns.x3, lane + WG * 3u);
}

// 32 lanes have 8 rows and 4 columns, so that they read as few different numbers at a time as can be.
fn lane_row(lane: u32) -> u32 {
    return lane % 8u + lane / 32u % 2u * 8u;
}

fn lane_column(lane: u32) -> u32 {
    return lane / 8u % 4u + lane / 64u * 4u;
}

fn add_group(sums: Sums, g: u32, lane: u32) -> Sums {
    let at = g * ROWS + lane_row(lane);
    let a = rows_at(at);
    let b = rows_at(at + ROW_STEP * 4u);
    let column = lane_column(lane);
    let x0 = sh_x[place(g, column)];
    let x1 = sh_x[place(g, column + COLUMN_STEP)];
    let x2 = sh_x[place(g, column + COLUMN_STEP * 2u)];
    let x3 = sh_x[place(g, column + COLUMN_STEP * 3u)];
    let x4 = sh_x[place(g, column + COLUMN_STEP * 4u)];
    let x5 = sh_x[place(g, column + COLUMN_STEP * 5u)];
    let x6 = sh_x[place(g, column + COLUMN_STEP * 6u)];
    let x7 = sh_x[place(g, column + COLUMN_STEP * 7u)];
    return Sums(
        four_rows(sums.a0, a, x0), four_rows(sums.a1, a, x1),
        four_rows(sums.a2, a, x2), four_rows(sums.a3, a, x3),
        four_rows(sums.a4, a, x4), four_rows(sums.a5, a, x5),
        four_rows(sums.a6, a, x6), four_rows(sums.a7, a, x7),
        four_rows(sums.b0, b, x0), four_rows(sums.b1, b, x1),
        four_rows(sums.b2, b, x2), four_rows(sums.b3, b, x3),
        four_rows(sums.b4, b, x4), four_rows(sums.b5, b, x5),
        four_rows(sums.b6, b, x6), four_rows(sums.b7, b, x7),
    );
}

fn store_sums(tile: Tile, lane: u32, sums: Sums) {
    let row = lane_row(lane);
    let column = lane_column(lane);
    store8(tile, row, column, sums.a0, sums.b0);
    store8(tile, row, column + COLUMN_STEP, sums.a1, sums.b1);
    store8(tile, row, column + COLUMN_STEP * 2u, sums.a2, sums.b2);
    store8(tile, row, column + COLUMN_STEP * 3u, sums.a3, sums.b3);
    store8(tile, row, column + COLUMN_STEP * 4u, sums.a4, sums.b4);
    store8(tile, row, column + COLUMN_STEP * 5u, sums.a5, sums.b5);
    store8(tile, row, column + COLUMN_STEP * 6u, sums.a6, sums.b6);
    store8(tile, row, column + COLUMN_STEP * 7u, sums.a7, sums.b7);
}

fn store8(tile: Tile, row: u32, column: u32, a: vec4<f32>, b: vec4<f32>) {
    store4(tile, row, column, a);
    store4(tile, row + ROW_STEP * 4u, column, b);
}
