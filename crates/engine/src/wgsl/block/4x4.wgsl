// A lane makes 4 rows by 4 columns of a tile.
const ROWS: u32 = 64u;
// Between two rows of a lane: sixteen lanes side by side make the rows.
const ROW_STEP: u32 = 16u;
// 16, 32 or 64; a lane has four of them.
override COLUMNS: u32 = 64u;
override WG: u32 = COLUMNS * 4u;

struct Sums {
    s0: vec4<f32>,
    s1: vec4<f32>,
    s2: vec4<f32>,
    s3: vec4<f32>,
}

struct Brought {
    x0: vec4<f32>,
    x1: vec4<f32>,
}

fn load_columns(tile: Tile, unit: u32, lane: u32) -> Brought {
    return Brought(load_column(tile, unit, lane), load_column(tile, unit, lane + WG));
}

fn put_columns(columns: Brought, lane: u32) {
    put_column(columns.x0, lane);
    put_column(columns.x1, lane + WG);
}

fn add_group(sums: Sums, g: u32, lane: u32) -> Sums {
    let w = rows_at(g * ROWS + lane % ROW_STEP);
    let column = lane / ROW_STEP;
    let step = COLUMNS / 4u;
    return Sums(
        four_rows(sums.s0, w, sh_x[place(g, column)]),
        four_rows(sums.s1, w, sh_x[place(g, column + step)]),
        four_rows(sums.s2, w, sh_x[place(g, column + step * 2u)]),
        four_rows(sums.s3, w, sh_x[place(g, column + step * 3u)]),
    );
}

fn store_sums(tile: Tile, lane: u32, sums: Sums) {
    let row = lane % ROW_STEP;
    let column = lane / ROW_STEP;
    let step = COLUMNS / 4u;
    store4(tile, row, column, sums.s0);
    store4(tile, row, column + step, sums.s1);
    store4(tile, row, column + step * 2u, sums.s2);
    store4(tile, row, column + step * 3u, sums.s3);
}
