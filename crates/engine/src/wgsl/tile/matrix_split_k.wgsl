// A GEMM tile with matrix units for few columns: 16 rows of weights by COLUMNS columns of x. SLICE units of each row and column are staged
// in workgroup memory at a time, as f16; each subgroup multiplies its share of them, and the sums of all subgroups are added at the end.
// So small matrices still occupy a large device. All sizes are constants of the text: naga fails where they are overrides.
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
// Groups of four of a row or column, and from one to the next: two more, so that rows do not hit the same memory bank.
const GROUPS: u32 = SLICE * 8u;
const STRIDE: u32 = GROUPS + 2u;
// Groups of a slice that a subgroup multiplies: 16.
const SHARE: u32 = GROUPS / SUBGROUPS;

var<workgroup> sh_w: array<vec4<f16>, WEIGHT_GROUPS>;
var<workgroup> sh_x: array<vec4<f16>, COLUMNS * STRIDE>;
// A block of sums of each subgroup.
var<workgroup> sh_y: array<f32, SUBGROUPS * 256u>;
// Scales of the columns.
var<workgroup> sh_scales: array<f32, COLUMNS>;

fn compute_tile(tile: Tile, lane: u32) {
    init_units(lane);
    var sums: Block;
    let share = lane / SUBGROUP * SHARE;
    for (var i = lane; i < COLUMNS; i += WG) {
        sh_scales[i] = x_scale(column_at(tile, i));
    }
    let start = weights_start(tile, lane);
    let units = depth(tile);
    // Neighbouring lanes load the groups of one column.
    let x_at0 = group_start(tile, 0u, lane);
    let x_at1 = group_start(tile, 1u, lane);
    let x_at2 = group_start(tile, 2u, lane);
    let x_at3 = group_start(tile, 3u, lane);
    let x_at4 = group_start(tile, 4u, lane);
    let x_at5 = group_start(tile, 5u, lane);
    let x_at6 = group_start(tile, 6u, lane);
    let x_at7 = group_start(tile, 7u, lane);
    // The next units are loaded while these are multiplied.
    var weights = load_slice(start, units.x, lane);
    var x0 = load_group(x_at0, units.x, lane);
    var x1 = load_group(x_at1, units.x, lane);
    var x2 = load_group(x_at2, units.x, lane);
    var x3 = load_group(x_at3, units.x, lane);
    var x4 = load_group(x_at4, units.x, lane);
    var x5 = load_group(x_at5, units.x, lane);
    var x6 = load_group(x_at6, units.x, lane);
    var x7 = load_group(x_at7, units.x, lane);
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
        let next = unit + SLICE;
        if next < units.y {
            if loads_weights(lane) {
                weights = load_slice(start, next, lane);
            }
            x0 = load_group(x_at0, next, lane);
            x1 = load_group(x_at1, next, lane);
            x2 = load_group(x_at2, next, lane);
            x3 = load_group(x_at3, next, lane);
            x4 = load_group(x_at4, next, lane);
            x5 = load_group(x_at5, next, lane);
            x6 = load_group(x_at6, next, lane);
            x7 = load_group(x_at7, next, lane);
        }
        // Written out, because not every compiler unrolls the loop.
        sums = multiply_add(left_block(0u, share), right(share), sums);
        sums = multiply_add(left_block(0u, share + 4u), right(share + 4u), sums);
        sums = multiply_add(left_block(0u, share + 8u), right(share + 8u), sums);
        sums = multiply_add(left_block(0u, share + 12u), right(share + 12u), sums);
        // The next units are written over these.
        workgroupBarrier();
    }
    // The blocks of all subgroups go through memory, where they are added.
    stage_block(sums, lane / SUBGROUP * 256u);
    workgroupBarrier();
    var sum = 0.0;
    for (var subgroup = 0u; subgroup < SUBGROUPS; subgroup++) {
        sum += sh_y[subgroup * 256u + lane];
    }
    store(tile, lane % 16u, lane / 16u, sum * sh_scales[lane / 16u]);
}

// Of the groups that a lane loads, the one with number i belongs to every WG / GROUPSth column.
fn group_start(tile: Tile, i: u32, lane: u32) -> u32 {
    return column_start(column_at(tile, lane / GROUPS + i * (WG / GROUPS)));
}

// Past the end of a row x is zero.
fn load_group(start: u32, unit: u32, lane: u32) -> vec4<f16> {
    let group = unit * 8u + lane % GROUPS;
    if group >= unit_pairs() * 16u {
        return vec4<f16>();
    }
    return x[start + group];
}

fn put_group(group: vec4<f16>, i: u32, lane: u32) {
    sh_x[(lane / GROUPS + i * (WG / GROUPS)) * STRIDE + lane % GROUPS] = group;
}
