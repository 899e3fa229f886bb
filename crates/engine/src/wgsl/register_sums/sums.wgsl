// The sums of a GEMM tile in registers: a lane has ROW_VEC4S by COLUMN_VEC4S blocks of 4 × 4. DEPTH of k are multiplied at a time, from
// sh_w[vec4][k][lane along the rows] and sh_x[vec4][k][lane along the columns]: two to four loads for up to 64 multiplications.
//
// The kernel defines store(tile, row, column, sum) and row_of(four, i), row i of a vec4 of rows.

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

// A lane's first vec4 of rows and of columns; its second ones are ROW_LANES and COLUMN_LANES further on. 32 lanes cover 8 vec4s of rows by 4
// of columns, and each 8 of them 4 by 2, which minimises the distinct values read at a time.
struct Place {
    row: u32,
    column: u32,
}

fn place_of(lane: u32) -> Place {
    return Place(
        lane / 32u % (ROW_LANES / 8u) * 8u + lane % 16u / 2u,
        lane / 32u / (ROW_LANES / 8u) * 4u + lane % 32u / 16u * 2u + lane % 2u,
    );
}

// Column i of four.
fn column_of(four: u32, i: u32) -> u32 {
    return four * 4u + i;
}

// Unrolled by hand, because not every compiler unrolls a loop.
fn multiply_slice(place: Place) {
    multiply(0u, place);
    multiply(1u, place);
    multiply(2u, place);
    multiply(3u, place);
    multiply(4u, place);
    multiply(5u, place);
    multiply(6u, place);
    multiply(7u, place);
    multiply(8u, place);
    multiply(9u, place);
    multiply(10u, place);
    multiply(11u, place);
    multiply(12u, place);
    multiply(13u, place);
    multiply(14u, place);
    multiply(15u, place);
}

// Accumulates the products of one k. A lane without second vec4s reads its first ones again, which costs nothing.
fn multiply(k: u32, place: Place) {
    let w0 = sh_w[0][k][place.row];
    let w1 = sh_w[ROW_VEC4S - 1u][k][place.row];
    let x0 = sh_x[0][k][place.column];
    let x1 = sh_x[COLUMN_VEC4S - 1u][k][place.column];
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

fn store_sums(tile: Tile, place: Place) {
    store_column(tile, place.row, column_of(place.column, 0u), a0, b0);
    store_column(tile, place.row, column_of(place.column, 1u), a1, b1);
    store_column(tile, place.row, column_of(place.column, 2u), a2, b2);
    store_column(tile, place.row, column_of(place.column, 3u), a3, b3);
    if COLUMN_VEC4S > 1u {
        let second = place.column + COLUMN_LANES;
        store_column(tile, place.row, column_of(second, 0u), a4, b4);
        store_column(tile, place.row, column_of(second, 1u), a5, b5);
        store_column(tile, place.row, column_of(second, 2u), a6, b6);
        store_column(tile, place.row, column_of(second, 3u), a7, b7);
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
