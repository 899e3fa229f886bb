// A GEMM tile with matrix units for few columns: ROWS rows of weights by COLUMNS columns of x, 16 or 32 of each. SLICE units of each row and
// column are staged in workgroup memory at a time, as f16; each subgroup multiplies its share of them, and the sums of all subgroups are
// added at the end. So small matrices still occupy a large device. All sizes are constants of the text: naga fails where they are overrides.
//
// The kernel defines the same functions as for `tile/matrix`.
//#use tile_shape
//#use matrix
//#use columns
//#use tile_weights
//#use stage_weights

const SUBGROUP: u32 = 32u;
const SUBGROUPS: u32 = 8u;
const WG: u32 = SUBGROUPS * SUBGROUP;
// vec4s of a column. A unit of weights is followed by one more, so that units of adjacent lanes do not hit the same memory bank, and
// a row by two more.
const GROUPS: u32 = SLICE * 8u;
const UNIT_GROUPS: u32 = 9u;
const STRIDE: u32 = SLICE * UNIT_GROUPS + 2u;
// vec4s of a slice that a subgroup multiplies: 8 or 16.
const SHARE: u32 = GROUPS / SUBGROUPS;
// vec4s of x that a lane loads: up to eight.
const LANE_GROUPS: u32 = COLUMNS * GROUPS / WG;

var<workgroup> sh_w: array<vec4<f16>, WEIGHT_GROUPS>;
var<workgroup> sh_x: array<vec4<f16>, COLUMNS * STRIDE>;
// A block of sums of each subgroup.
var<workgroup> sh_y: array<f32, SUBGROUPS * 256u>;
// Scales of the columns.
var<workgroup> sh_scales: array<f32, COLUMNS>;

// A subgroup's sums: blocks of 16 rows, by blocks of columns. Browsers allow matrices only in function variables.
struct Sums {
    a0: Block,
    a1: Block,
    b0: Block,
    b1: Block,
}

fn compute_tile(tile: Tile, lane: u32) {
    init_units(lane);
    var sums: Sums;
    let share = lane / SUBGROUP * SHARE;
    for (var i = lane; i < COLUMNS; i += WG) {
        sh_scales[i] = x_scale(column_at(tile, i));
    }
    let units = depth(tile);
    // The next units are loaded while these are multiplied.
    var slice = load(tile, units.x, lane);
    for (var unit = units.x; unit < units.y; unit += SLICE) {
        stage(slice, lane);
        workgroupBarrier();
        if unit + SLICE < units.y {
            slice = load(tile, unit + SLICE, lane);
        }
        // Unrolled by hand, because not every compiler unrolls the loop.
        multiply(&sums, share);
        multiply(&sums, share + 4u);
        if SHARE > 8u {
            multiply(&sums, share + 8u);
            multiply(&sums, share + 12u);
        }
        // The next units overwrite these.
        workgroupBarrier();
    }
    store_sums(tile, sums.a0, 0u, 0u, lane);
    if ROWS > 16u {
        store_sums(tile, sums.b0, 16u, 0u, lane);
    }
    if COLUMNS > 16u {
        store_sums(tile, sums.a1, 0u, 16u, lane);
        if ROWS > 16u {
            store_sums(tile, sums.b1, 16u, 16u, lane);
        }
    }
}

// Accumulates the products over 16 of k, from vec4 k on.
fn multiply(sums: ptr<function, Sums>, k: u32) {
    let x0 = right(k);
    let a = left_block(0u, k);
    (*sums).a0 = multiply_add(a, x0, (*sums).a0);
    if COLUMNS > 16u {
        let x1 = right(16u * STRIDE + k);
        (*sums).a1 = multiply_add(a, x1, (*sums).a1);
        if ROWS > 16u {
            let b = left_block(16u, k);
            (*sums).b0 = multiply_add(b, x0, (*sums).b0);
            (*sums).b1 = multiply_add(b, x1, (*sums).b1);
        }
    } else if ROWS > 16u {
        (*sums).b0 = multiply_add(left_block(16u, k), x0, (*sums).b0);
    }
}

// What a lane loads of a slice.
struct Slice {
    weights: LoadedWeights,
    x0: vec4<f16>,
    x1: vec4<f16>,
    x2: vec4<f16>,
    x3: vec4<f16>,
    x4: vec4<f16>,
    x5: vec4<f16>,
    x6: vec4<f16>,
    x7: vec4<f16>,
}

fn load(tile: Tile, unit: u32, lane: u32) -> Slice {
    var slice: Slice;
    if loads_weights(lane) {
        slice.weights = load_slice(weights_start(tile, lane), unit, lane);
    }
    slice.x0 = load_group(tile, 0u, unit, lane);
    slice.x1 = load_group(tile, 1u, unit, lane);
    slice.x2 = load_group(tile, 2u, unit, lane);
    slice.x3 = load_group(tile, 3u, unit, lane);
    slice.x4 = load_group(tile, 4u, unit, lane);
    slice.x5 = load_group(tile, 5u, unit, lane);
    slice.x6 = load_group(tile, 6u, unit, lane);
    slice.x7 = load_group(tile, 7u, unit, lane);
    return slice;
}

fn stage(slice: Slice, lane: u32) {
    if loads_weights(lane) {
        stage_weights(slice.weights, lane);
    }
    put_group(slice.x0, 0u, lane);
    put_group(slice.x1, 1u, lane);
    put_group(slice.x2, 2u, lane);
    put_group(slice.x3, 3u, lane);
    put_group(slice.x4, 4u, lane);
    put_group(slice.x5, 5u, lane);
    put_group(slice.x6, 6u, lane);
    put_group(slice.x7, 7u, lane);
}

// Adjacent lanes load the vec4s of one column; the i-th vec4 of a lane belongs to every WG / GROUPSth column. Past the end of a row x is zero.
fn load_group(tile: Tile, i: u32, unit: u32, lane: u32) -> vec4<f16> {
    let group = unit * 8u + lane % GROUPS;
    if i >= LANE_GROUPS || group >= unit_pairs() * 16u {
        return vec4<f16>();
    }
    return x[column_start(column_at(tile, lane / GROUPS + i * (WG / GROUPS))) + group];
}

fn put_group(group: vec4<f16>, i: u32, lane: u32) {
    if i < LANE_GROUPS {
        sh_x[(lane / GROUPS + i * (WG / GROUPS)) * STRIDE + lane % GROUPS] = group;
    }
}

// A block of every subgroup goes through workgroup memory, where they are added.
fn store_sums(tile: Tile, sums: Block, row: u32, column: u32, lane: u32) {
    stage_block(sums, lane / SUBGROUP * 256u);
    workgroupBarrier();
    var sum = 0.0;
    for (var subgroup = 0u; subgroup < SUBGROUPS; subgroup++) {
        sum += sh_y[subgroup * 256u + lane];
    }
    let c = column + lane / 16u;
    store(tile, row + lane % 16u, c, sum * sh_scales[c]);
    // The next blocks overwrite these.
    workgroupBarrier();
}
