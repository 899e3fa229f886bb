// A GEMM tile with matrix units for few columns: ROWS rows of weights by COLUMNS columns of x, 16 or 32 of each. Each subgroup decodes its
// own units of k into its own part of workgroup memory, as f16, and multiplies them with x from global memory, so subgroups do not wait
// for each other; their sums are added at the end. So small matrices still occupy a large device. All sizes are constants of the text:
// naga fails where they are overrides.
//
// The kernel defines the same functions as for `tile/matrix`.
//#use tile_shape
//#use matrix
//#use columns
//#use matrix_x
//#use tile_weights
//#use stage_weights

const SUBGROUP: u32 = 32u;
const WG: u32 = SUBGROUPS * SUBGROUP;
// Units of a row that a subgroup decodes at a time, one per lane: two of 16 rows, or one of 32.
const SLICE: u32 = SUBGROUP / ROWS;
// The stride of a row in vec4s: two more than its units, so that rows do not hit the same memory bank.
const STRIDE: u32 = SLICE * 8u + 2u;
// vec4s of a subgroup, and units of all subgroups together.
const SHARE: u32 = ROWS * STRIDE;
const STEP: u32 = SUBGROUPS * SLICE;

var<workgroup> sh_w: array<vec4<f16>, SUBGROUPS * SHARE>;
// Not used: x is read from global memory.
var<workgroup> sh_x: array<vec4<f16>, 1>;
// Staging memory for blocks of sums.
var<workgroup> sh_y: array<f32, SUM_BLOCKS * 256u>;
// Scales of the columns.
var<workgroup> sh_scales: array<f32, COLUMNS>;

// A subgroup's sums: blocks of 16 rows, by blocks of columns. Browsers allow matrices only in function variables.
struct Sums {
    a0: Block,
    a1: Block,
    b0: Block,
}

fn compute_tile(tile: Tile, lane: u32) {
    init_units(lane);
    var sums: Sums;
    for (var i = lane; i < COLUMNS; i += WG) {
        sh_scales[i] = x_scale(column_at(tile, i));
    }
    let subgroup = lane / SUBGROUP;
    let share = subgroup * SHARE;
    let row = lane % SUBGROUP / SLICE;
    let start = row_units_at(tile, row);
    let place = share + row * STRIDE + lane % SLICE * 8u;
    // Columns past the last one are not initialised, and not stored.
    let x_stride = column_start(1u);
    let x_start = column_start(tile.version_at + tile.first_column);
    // Past the end of a row x is zero, so that any weights will do.
    let units = unit_pairs() * 2u;
    let last = p.row_units - 1u;
    var unit = subgroup * SLICE;
    // The next units are loaded while these are multiplied.
    var weights = load_packed_unit(start + min(unit + lane % SLICE, last));
    // Every subgroup takes the same number of steps: where there is no barrier of a subgroup, all wait for each other.
    for (var first = 0u; first < units; first += STEP) {
        stage_unit(weights, place);
        weights = load_packed_unit(start + min(unit + STEP + lane % SLICE, last));
        subgroup_barrier();
        if unit < units {
            // Unrolled by hand, because not every compiler unrolls the loop.
            let x_at = x_start + unit * 8u;
            multiply(&sums, share, x_at, x_stride);
            multiply(&sums, share + 4u, x_at + 4u, x_stride);
            if SLICE > 1u {
                multiply(&sums, share + 8u, x_at + 8u, x_stride);
                multiply(&sums, share + 12u, x_at + 12u, x_stride);
            }
        }
        // The next units overwrite these.
        subgroup_barrier();
        unit += STEP;
    }
    store_sums(tile, sums.a0, 0u, 0u, lane);
    if ROWS > 16u {
        store_sums(tile, sums.b0, 16u, 0u, lane);
    }
    if COLUMNS > 16u {
        store_sums(tile, sums.a1, 0u, 16u, lane);
    }
}

// Accumulates the products over 16 of k, from these vec4s on.
fn multiply(sums: ptr<function, Sums>, at: u32, x_at: u32, x_stride: u32) {
    let x0 = x_block(x_at, x_stride);
    let a = left(at);
    (*sums).a0 = multiply_add_x(a, x0, (*sums).a0);
    if ROWS > 16u {
        (*sums).b0 = multiply_add_x(left(at + 16u * STRIDE), x0, (*sums).b0);
    }
    if COLUMNS > 16u {
        (*sums).a1 = multiply_add_x(a, x_block(x_at + 16u * x_stride, x_stride), (*sums).a1);
    }
}

// A block of each subgroup, SUM_BLOCKS of them at a time, goes through workgroup memory, where they are added.
fn store_sums(tile: Tile, sums: Block, row: u32, column: u32, lane: u32) {
    // Elements `lane` and, with fewer lanes than elements, `lane + WG`.
    var sum0 = 0.0;
    var sum1 = 0.0;
    for (var first = 0u; first < SUBGROUPS; first += SUM_BLOCKS) {
        let ours = lane / SUBGROUP - first;
        if ours < SUM_BLOCKS {
            stage_block(sums, ours * 256u);
        }
        workgroupBarrier();
        for (var block = 0u; block < SUM_BLOCKS; block++) {
            sum0 += sh_y[block * 256u + lane % 256u];
            if WG < 256u {
                sum1 += sh_y[block * 256u + (lane + WG) % 256u];
            }
        }
        // The next blocks overwrite these.
        workgroupBarrier();
    }
    if lane < 256u {
        store_sum(tile, row, column, lane, sum0);
    }
    if WG < 256u {
        store_sum(tile, row, column, lane + WG, sum1);
    }
}

fn store_sum(tile: Tile, row: u32, column: u32, element: u32, sum: f32) {
    let c = column + element / 16u;
    store(tile, row + element % 16u, c, sum * sh_scales[c]);
}
