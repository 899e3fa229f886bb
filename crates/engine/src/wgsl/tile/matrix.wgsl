// A tile of a product, by matrix units: ROWS rows of weights by COLUMNS columns of x. Two units of each row and column are brought
// to workgroup memory at a time, as halves. All sizes are constants of the text: naga fails where they are overrides.
//
// The kernel says where a tile lies: `Tile`, row_units_at(tile, row), column_at(tile, column) and store(tile, row, column, sum).
//#use cut
//#use matrix
//#use columns

const SUBGROUP: u32 = 32u;
const WG: u32 = 2u * ROWS;
// Subgroups side by side.
const ACROSS: u32 = COLUMNS / (16u * COLUMN_BLOCKS);
// Groups of four from one row to the next: two more than two units have, so that rows do not meet in a memory bank.
const STRIDE: u32 = 18u;
// Groups of x that a lane brings: up to eight.
const LANE_GROUPS: u32 = COLUMNS * 16u / WG;

var<workgroup> sh_w: array<vec4<f16>, ROWS * STRIDE>;
var<workgroup> sh_x: array<vec4<f16>, COLUMNS * STRIDE>;
// A block of sums for each subgroup.
var<workgroup> sh_y: array<f32, WG / SUBGROUP * 256u>;

fn make_tile(tile: Tile, lane: u32) {
    let row = lane / SUBGROUP / ACROSS * ROW_BLOCKS * 16u;
    let column = lane / SUBGROUP % ACROSS * COLUMN_BLOCKS * 16u;
    // Rows 0 to 15 and 16 to 31, by blocks of columns.
    var a0 = Block();
    var a1 = Block();
    var a2 = Block();
    var a3 = Block();
    var b0 = Block();
    var b1 = Block();
    var b2 = Block();
    var b3 = Block();
    let start = row_units_at(tile, lane / 2u);
    var weights = load_unit(start + min(lane % 2u, p.row_units - 1u));
    var columns = load_columns(tile, 0u, lane);
    for (var unit = 0u; unit < p.row_units; unit += 2u) {
        put_weights(weights, lane);
        put_columns(columns, lane);
        workgroupBarrier();
        // The next ones are on their way while these are multiplied. Behind the end of a row x is zero.
        let next = unit + 2u;
        weights = load_unit(start + min(next + lane % 2u, p.row_units - 1u));
        columns = load_columns(tile, min(next, unit_pairs() * 2u - 2u), lane);
        for (var k = 0u; k < 16u; k += 4u) {
            let upper = left(row * STRIDE + k);
            let x0 = right(column * STRIDE + k);
            a0 = multiply_add(upper, x0, a0);
            let lower = left((row + 16u * (ROW_BLOCKS - 1u)) * STRIDE + k);
            if ROW_BLOCKS > 1u {
                b0 = multiply_add(lower, x0, b0);
            }
            if COLUMN_BLOCKS > 1u {
                let x1 = right((column + 16u) * STRIDE + k);
                a1 = multiply_add(upper, x1, a1);
                b1 = multiply_add(lower, x1, b1);
            }
            if COLUMN_BLOCKS > 2u {
                let x2 = right((column + 32u) * STRIDE + k);
                a2 = multiply_add(upper, x2, a2);
                b2 = multiply_add(lower, x2, b2);
                let x3 = right((column + 48u) * STRIDE + k);
                a3 = multiply_add(upper, x3, a3);
                b3 = multiply_add(lower, x3, b3);
            }
        }
        // The next units are written over these.
        workgroupBarrier();
    }
    store_block(tile, a0, row, column, lane);
    if ROW_BLOCKS > 1u {
        store_block(tile, b0, row + 16u, column, lane);
    }
    if COLUMN_BLOCKS > 1u {
        store_block(tile, a1, row, column + 16u, lane);
        store_block(tile, b1, row + 16u, column + 16u, lane);
    }
    if COLUMN_BLOCKS > 2u {
        store_block(tile, a2, row, column + 32u, lane);
        store_block(tile, b2, row + 16u, column + 32u, lane);
        store_block(tile, a3, row, column + 48u, lane);
        store_block(tile, b3, row + 16u, column + 48u, lane);
    }
}

// Two neighbouring lanes have the units of one row.
fn put_weights(weights: array<vec4<f32>, 8>, lane: u32) {
    let at = lane / 2u * STRIDE + lane % 2u * 8u;
    sh_w[at] = vec4<f16>(weights[0]);
    sh_w[at + 1u] = vec4<f16>(weights[1]);
    sh_w[at + 2u] = vec4<f16>(weights[2]);
    sh_w[at + 3u] = vec4<f16>(weights[3]);
    sh_w[at + 4u] = vec4<f16>(weights[4]);
    sh_w[at + 5u] = vec4<f16>(weights[5]);
    sh_w[at + 6u] = vec4<f16>(weights[6]);
    sh_w[at + 7u] = vec4<f16>(weights[7]);
}

// Sixteen neighbouring lanes have the two units of one column; a lane has every WG / 16th column.
fn load_columns(tile: Tile, unit: u32, lane: u32) -> array<vec4<f16>, 8> {
    return array<vec4<f16>, 8>(
        load_group(tile, 0u, unit, lane), load_group(tile, 1u, unit, lane),
        load_group(tile, 2u, unit, lane), load_group(tile, 3u, unit, lane),
        load_group(tile, 4u, unit, lane), load_group(tile, 5u, unit, lane),
        load_group(tile, 6u, unit, lane), load_group(tile, 7u, unit, lane),
    );
}

fn load_group(tile: Tile, i: u32, unit: u32, lane: u32) -> vec4<f16> {
    if i >= LANE_GROUPS {
        return vec4<f16>();
    }
    return x_halves(column_at(tile, lane / 16u + i * (WG / 16u)), unit, lane % 16u);
}

fn put_columns(columns: array<vec4<f16>, 8>, lane: u32) {
    put_group(columns[0], 0u, lane);
    put_group(columns[1], 1u, lane);
    put_group(columns[2], 2u, lane);
    put_group(columns[3], 3u, lane);
    put_group(columns[4], 4u, lane);
    put_group(columns[5], 5u, lane);
    put_group(columns[6], 6u, lane);
    put_group(columns[7], 7u, lane);
}

fn put_group(group: vec4<f16>, i: u32, lane: u32) {
    if i < LANE_GROUPS {
        sh_x[(lane / 16u + i * (WG / 16u)) * STRIDE + lane % 16u] = group;
    }
}

// A subgroup's block goes through memory, where its numbers can be told apart.
fn store_block(tile: Tile, sums: Block, row: u32, column: u32, lane: u32) {
    let at = lane / SUBGROUP * 256u;
    put_block(sums, at);
    workgroupBarrier();
    for (var i = lane % SUBGROUP; i < 256u; i += SUBGROUP) {
        let c = column + i / 16u;
        store(tile, row + i % 16u, c, sh_y[at + i] * x_scale(column_at(tile, c)));
    }
    // The next block is written over this one.
    workgroupBarrier();
}
