// x[t, k] = sum over r of y[t, r] * W[r, k]     by matrix units: a workgroup makes a tile of ROWS of k by COLUMNS positions t
// 64 rows of the weight are brought to workgroup memory at a time, as halves, and 64 numbers of each position: what
// ops/tile/halves.wgsl makes of y. All sizes are constants of the text: naga fails where they are overrides.
//#use weights
//#use quant
//#use cut
//#use matrix

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

const SUBGROUP: u32 = 32u;
const WG: u32 = 2u * ROWS;
// Subgroups side by side.
const ACROSS: u32 = COLUMNS / (16u * COLUMN_BLOCKS);
// Units of a row side by side: a lane brings one of 64 rows.
const UNITS: u32 = ROWS / 32u;
// Rows of the weight at a time.
const DEPTH: u32 = 64u;
// Groups of four from one row to the next, and from one position to the next: two more than there are, so that they do not meet in
// a memory bank.
const LEFT_STRIDE: u32 = ROWS / 4u + 2u;
const STRIDE: u32 = 18u;
// Groups of y that a lane brings.
const LANE_GROUPS: u32 = COLUMNS * 16u / WG;

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(3) var<storage, read> y: array<vec4<f16>>;
@group(0) @binding(4) var<storage, read_write> x: array<f32>;

var<workgroup> sh_w: array<vec4<f16>, DEPTH * LEFT_STRIDE>;
var<workgroup> sh_x: array<vec4<f16>, COLUMNS * STRIDE>;
// A block of sums for each subgroup.
var<workgroup> sh_y: array<f32, WG / SUBGROUP * 256u>;

// The sums of a subgroup: rows 0 to 15 and 16 to 31, by blocks of columns.
var<private> a0: Block;
var<private> a1: Block;
var<private> a2: Block;
var<private> a3: Block;
var<private> b0: Block;
var<private> b1: Block;
var<private> b2: Block;
var<private> b3: Block;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tiles = (p.count + COLUMNS - 1u) / COLUMNS;
    // Neighbouring workgroups share their weights. Those behind the last tile store nothing.
    let first_position = grid_index(group) % tiles * COLUMNS;
    let first_unit = grid_index(group) / tiles * UNITS;
    let row = lane / SUBGROUP / ACROSS * ROW_BLOCKS * 16u;
    let column = lane / SUBGROUP % ACROSS * COLUMN_BLOCKS * 16u;
    for (var first = 0u; first < p.rows; first += DEPTH) {
        bring_weights(first, first_unit, lane);
        bring_positions(first_position, first, lane);
        workgroupBarrier();
        multiply(row, column, 0u);
        multiply(row, column, 16u);
        multiply(row, column, 32u);
        multiply(row, column, 48u);
        // The next rows are written over these.
        workgroupBarrier();
    }
    let at = vec2(first_unit, first_position);
    store_block(at, a0, row, column, lane);
    if ROW_BLOCKS > 1u {
        store_block(at, b0, row + 16u, column, lane);
    }
    if COLUMN_BLOCKS > 1u {
        store_block(at, a1, row, column + 16u, lane);
        store_block(at, b1, row + 16u, column + 16u, lane);
    }
    if COLUMN_BLOCKS > 2u {
        store_block(at, a2, row, column + 32u, lane);
        store_block(at, b2, row + 16u, column + 32u, lane);
        store_block(at, a3, row, column + 48u, lane);
        store_block(at, b3, row + 16u, column + 48u, lane);
    }
}

// Rows behind the end count nothing because y is zero there, and a unit behind the end is not stored: both read the last one.
fn bring_weights(first: u32, first_unit: u32, lane: u32) {
    let r = lane / UNITS;
    let unit = min(first_unit + lane % UNITS, p.row_units - 1u);
    let weights = load_unit(min(first + r, p.rows - 1u) * p.row_units + unit);
    let at = r * LEFT_STRIDE + lane % UNITS * 8u;
    sh_w[at] = vec4<f16>(weights[0]);
    sh_w[at + 1u] = vec4<f16>(weights[1]);
    sh_w[at + 2u] = vec4<f16>(weights[2]);
    sh_w[at + 3u] = vec4<f16>(weights[3]);
    sh_w[at + 4u] = vec4<f16>(weights[4]);
    sh_w[at + 5u] = vec4<f16>(weights[5]);
    sh_w[at + 6u] = vec4<f16>(weights[6]);
    sh_w[at + 7u] = vec4<f16>(weights[7]);
}

// Sixteen lanes bring the numbers of one position.
fn bring_positions(first_position: u32, first: u32, lane: u32) {
    for (var i = 0u; i < LANE_GROUPS; i++) {
        let c = lane / 16u + i * (WG / 16u);
        let start = position_start(min(first_position + c, p.count - 1u));
        sh_x[c * STRIDE + lane % 16u] = y[start + first / 4u + lane % 16u];
    }
}

// Groups of a position: whole sixteens, and two that hold its exponent.
fn position_groups() -> u32 {
    return (p.rows + DEPTH - 1u) / DEPTH * 16u;
}

fn position_start(position: u32) -> u32 {
    return position * (position_groups() + 2u);
}

fn scale_of(position: u32) -> f32 {
    let exponent = i32(y[position_start(position) + position_groups()].x);
    return bitcast<f32>(u32(exponent + 127) << 23u);
}

// Adds the products of 16 rows of the weight, from row k on.
fn multiply(row: u32, column: u32, k: u32) {
    let upper = left_turned(k * LEFT_STRIDE + row / 4u, LEFT_STRIDE);
    let x0 = right(column * STRIDE + k / 4u);
    a0 = multiply_add(upper, x0, a0);
    if ROW_BLOCKS > 1u {
        let lower = left_turned(k * LEFT_STRIDE + row / 4u + 4u, LEFT_STRIDE);
        b0 = multiply_add(lower, x0, b0);
        if COLUMN_BLOCKS > 1u {
            let x1 = right((column + 16u) * STRIDE + k / 4u);
            a1 = multiply_add(upper, x1, a1);
            b1 = multiply_add(lower, x1, b1);
        }
        if COLUMN_BLOCKS > 2u {
            let x2 = right((column + 32u) * STRIDE + k / 4u);
            a2 = multiply_add(upper, x2, a2);
            b2 = multiply_add(lower, x2, b2);
            let x3 = right((column + 48u) * STRIDE + k / 4u);
            a3 = multiply_add(upper, x3, a3);
            b3 = multiply_add(lower, x3, b3);
        }
    }
}

// A subgroup's block goes through memory, where its numbers can be told apart.
fn store_block(first: vec2<u32>, sums: Block, row: u32, column: u32, lane: u32) {
    let at = lane / SUBGROUP * 256u;
    put_block(sums, at);
    workgroupBarrier();
    for (var i = lane % SUBGROUP; i < 256u; i += SUBGROUP) {
        let position = first.y + column + i / 16u;
        let r = row + i % 16u;
        let unit = first.x + r / 32u;
        if unit < p.row_units && position < p.count {
            let k = unit_column(unit, r % 32u / 4u) + r % 4u;
            // Rows of plain floats may end inside a group.
            if k < p.width {
                x[position * p.width + k] = sh_y[at + i] * scale_of(position);
            }
        }
    }
    // The next block is written over this one.
    workgroupBarrier();
}
