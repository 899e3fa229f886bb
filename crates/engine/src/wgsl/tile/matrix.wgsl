// A GEMM tile with matrix units: ROWS rows of weights by COLUMNS columns of x. SLICE units of each row and column are staged in workgroup
// memory as f16 at a time. All sizes are constants in the source: naga fails if they are overrides.
//
// The less workgroup memory a tile takes, the more tiles are resident per multiprocessor, and one computes while another waits for
// memory: some drivers limit the workgroup memory of a multiprocessor to the maximum of one workgroup.
//
// The kernel defines the tile: `Tile`, column_at(tile, column), store(tile, row, column, sum) and what the `tile_weights` part needs.
// How weights are staged is a part too: loads_weights(lane), weights_start(tile, lane), load_slice(start, unit, lane) and
// stage_weights(loaded, lane).
//#use tile_shape
//#use matrix
//#use columns
//#use tile_weights
//#use stage_weights

const SUBGROUP: u32 = 32u;
// Subgroups along the columns, and in total.
const ACROSS: u32 = COLUMNS / (16u * COLUMN_BLOCKS);
const SUBGROUPS: u32 = ROWS / (16u * ROW_BLOCKS) * ACROSS;
const WG: u32 = SUBGROUPS * SUBGROUP;
// vec4s per row or column, and the stride: two more, so that rows do not hit the same memory bank.
const GROUPS: u32 = SLICE * 8u;
const STRIDE: u32 = GROUPS + 2u;
// vec4s of x that a lane loads: up to eight.
const LANE_GROUPS: u32 = COLUMNS * GROUPS / WG;

var<workgroup> sh_w: array<vec4<f16>, WEIGHT_GROUPS>;
var<workgroup> sh_x: array<vec4<f16>, COLUMNS * STRIDE>;
// Staging memory for blocks of sums.
var<workgroup> sh_y: array<f32, SUM_BLOCKS * 256u>;
// Scales of the columns.
var<workgroup> sh_scales: array<f32, COLUMNS>;

// A subgroup's sums: rows 0 to 15 and 16 to 31, by blocks of columns. Browsers allow matrices only in function variables.
struct Sums {
    a0: Block,
    a1: Block,
    a2: Block,
    a3: Block,
    b0: Block,
    b1: Block,
    b2: Block,
    b3: Block,
}

fn compute_tile(tile: Tile, lane: u32) {
    init_units(lane);
    var sums: Sums;
    let row = lane / SUBGROUP / ACROSS * ROW_BLOCKS * 16u;
    let column = lane / SUBGROUP % ACROSS * COLUMN_BLOCKS * 16u;
    for (var i = lane; i < COLUMNS; i += WG) {
        sh_scales[i] = x_scale(column_at(tile, i));
    }
    let start = weights_start(tile, lane);
    let units = depth(tile);
    // Adjacent lanes load the vec4s of one column.
    let x_at0 = group_start(tile, 0u, lane);
    let x_at1 = group_start(tile, 1u, lane);
    let x_at2 = group_start(tile, 2u, lane);
    let x_at3 = group_start(tile, 3u, lane);
    let x_at4 = group_start(tile, 4u, lane);
    let x_at5 = group_start(tile, 5u, lane);
    let x_at6 = group_start(tile, 6u, lane);
    let x_at7 = group_start(tile, 7u, lane);
    // The next units are loaded while these are multiplied. Past the end of a row x is zero.
    var weights = load_slice(start, units.x, lane);
    var x0 = load_group(x_at0, 0u, units.x);
    var x1 = load_group(x_at1, 1u, units.x);
    var x2 = load_group(x_at2, 2u, units.x);
    var x3 = load_group(x_at3, 3u, units.x);
    var x4 = load_group(x_at4, 4u, units.x);
    var x5 = load_group(x_at5, 5u, units.x);
    var x6 = load_group(x_at6, 6u, units.x);
    var x7 = load_group(x_at7, 7u, units.x);
    for (var unit = units.x; unit < units.y; unit += SLICE) {
        if loads_weights(lane) {
            stage_weights(weights, lane);
        }
        put_group(x0, 0u, lane);
        put_group(x1, 1u, lane);
        put_group(x2, 2u, lane);
        put_group(x3, 3u, lane);
        put_group(x4, 4u, lane);
        put_group(x5, 5u, lane);
        put_group(x6, 6u, lane);
        put_group(x7, 7u, lane);
        workgroupBarrier();
        let next = min(unit + SLICE, unit_pairs() * 2u - SLICE);
        if loads_weights(lane) {
            weights = load_slice(start, next, lane);
        }
        x0 = load_group(x_at0, 0u, next);
        x1 = load_group(x_at1, 1u, next);
        x2 = load_group(x_at2, 2u, next);
        x3 = load_group(x_at3, 3u, next);
        x4 = load_group(x_at4, 4u, next);
        x5 = load_group(x_at5, 5u, next);
        x6 = load_group(x_at6, 6u, next);
        x7 = load_group(x_at7, 7u, next);
        // Unrolled by hand, because not every compiler unrolls the loop.
        multiply(&sums, row, column, 0u);
        multiply(&sums, row, column, 4u);
        if SLICE > 1u {
            multiply(&sums, row, column, 8u);
            multiply(&sums, row, column, 12u);
        }
        // The next units overwrite these.
        workgroupBarrier();
    }
    store_block(tile, sums.a0, 0u, 0u, lane);
    if ROW_BLOCKS > 1u {
        store_block(tile, sums.b0, 16u, 0u, lane);
    }
    if COLUMN_BLOCKS > 1u {
        store_block(tile, sums.a1, 0u, 16u, lane);
        store_block(tile, sums.b1, 16u, 16u, lane);
    }
    if COLUMN_BLOCKS > 2u {
        store_block(tile, sums.a2, 0u, 32u, lane);
        store_block(tile, sums.b2, 16u, 32u, lane);
        store_block(tile, sums.a3, 0u, 48u, lane);
        store_block(tile, sums.b3, 16u, 48u, lane);
    }
}

// Accumulates the products over 16 of k, from vec4 k on.
fn multiply(sums: ptr<function, Sums>, row: u32, column: u32, k: u32) {
    let upper = left_block(row, k);
    let x0 = right(column * STRIDE + k);
    (*sums).a0 = multiply_add(upper, x0, (*sums).a0);
    if ROW_BLOCKS > 1u {
        let lower = left_block(row + 16u, k);
        (*sums).b0 = multiply_add(lower, x0, (*sums).b0);
        if COLUMN_BLOCKS > 1u {
            let x1 = right((column + 16u) * STRIDE + k);
            (*sums).a1 = multiply_add(upper, x1, (*sums).a1);
            (*sums).b1 = multiply_add(lower, x1, (*sums).b1);
        }
        if COLUMN_BLOCKS > 2u {
            let x2 = right((column + 32u) * STRIDE + k);
            (*sums).a2 = multiply_add(upper, x2, (*sums).a2);
            (*sums).b2 = multiply_add(lower, x2, (*sums).b2);
            let x3 = right((column + 48u) * STRIDE + k);
            (*sums).a3 = multiply_add(upper, x3, (*sums).a3);
            (*sums).b3 = multiply_add(lower, x3, (*sums).b3);
        }
    }
}

// The i-th vec4 that a lane loads belongs to every WG / GROUPSth column.
fn group_start(tile: Tile, i: u32, lane: u32) -> u32 {
    if i >= LANE_GROUPS {
        return 0u;
    }
    return column_start(column_at(tile, lane / GROUPS + i * (WG / GROUPS))) + lane % GROUPS;
}

fn load_group(start: u32, i: u32, unit: u32) -> vec4<f16> {
    if i >= LANE_GROUPS {
        return vec4<f16>();
    }
    return x[start + unit * 8u];
}

fn put_group(group: vec4<f16>, i: u32, lane: u32) {
    if i < LANE_GROUPS {
        sh_x[(lane / GROUPS + i * (WG / GROUPS)) * STRIDE + lane % GROUPS] = group;
    }
}

// A block of each subgroup, SUM_BLOCKS of them at a time, goes through workgroup memory, where its elements can be indexed.
fn store_block(tile: Tile, sums: Block, row: u32, column: u32, lane: u32) {
    for (var first = 0u; first < SUBGROUPS; first += SUM_BLOCKS) {
        let ours = lane / SUBGROUP - first;
        if ours < SUM_BLOCKS {
            stage_block(sums, ours * 256u);
        }
        workgroupBarrier();
        for (var i = lane; i < SUM_BLOCKS * 256u; i += WG) {
            let subgroup = first + i / 256u;
            let r = subgroup / ACROSS * ROW_BLOCKS * 16u + row + i % 16u;
            let c = subgroup % ACROSS * COLUMN_BLOCKS * 16u + column + i % 256u / 16u;
            store(tile, r, c, sh_y[i] * sh_scales[c]);
        }
        // The next blocks overwrite these.
        workgroupBarrier();
    }
}
