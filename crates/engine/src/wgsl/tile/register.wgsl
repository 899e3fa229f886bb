// A GEMM tile without matrix units, accumulated in registers: 64 rows by COLUMNS columns, over slices of 32 of k. Half a slice of each row
// and column is in workgroup memory at a time, as vec4s of four rows or four columns, so that a lane reads its rows and columns of one k
// by two to four loads for up to 64 multiplications. More workgroup memory would leave fewer workgroups to a multiprocessor.
//
// All sizes are constants in the source, and lanes are the last array dimension: one bounds check of a lane's index then serves all k.
//
// The kernel defines the tile: `Tile`, column_at(tile, column), store(tile, row, column, sum) and what the `tile_weights` part needs,
// which defines slices(tile), weights_start(tile, lane), load_slice(start, slice, lane), stage_weights(loaded, half, lane),
// column4(column, slice, part, half) and row_of(four, i).
//#use tile_shape
//#use tile_weights

const ROWS: u32 = 64u;
// Lanes along rows and along columns, and in total.
const ROW_LANES: u32 = ROWS / (4u * ROW_VEC4S);
const COLUMN_LANES: u32 = COLUMNS / (4u * COLUMN_VEC4S);
const WG: u32 = ROW_LANES * COLUMN_LANES;
// Depth in k of the data in workgroup memory.
const DEPTH: u32 = 16u;

// One entry more than lanes, so that adjacent entries do not hit the same memory bank.
var<workgroup> sh_w: array<array<array<vec4<f32>, ROW_LANES + 1u>, DEPTH>, ROW_VEC4S>;
var<workgroup> sh_x: array<array<array<vec4<f32>, COLUMN_LANES + 1u>, DEPTH>, COLUMN_VEC4S>;

//#use register_sums

// Four of k for each of four columns.
struct Columns {
    x0: vec4<f32>,
    x1: vec4<f32>,
    x2: vec4<f32>,
    x3: vec4<f32>,
}

fn compute_tile(tile: Tile, lane: u32) {
    let place = place_of(lane);
    // What a lane loads: four elements of each of four columns, and as much of the weights.
    let loads_columns = COLUMNS == ROWS || lane_vec4(lane) < COLUMNS / 4u;
    let four = min(lane_vec4(lane), COLUMNS / 4u - 1u);
    let part = lane_part(lane);
    let weights_at = weights_start(tile, lane);
    let columns_at = vec4(
        column_at(tile, column_of(four, 0u)), column_at(tile, column_of(four, 1u)),
        column_at(tile, column_of(four, 2u)), column_at(tile, column_of(four, 3u)),
    );
    let span = slices(tile);
    // The next elements are loaded while these are multiplied. Weights are loaded once for both halves, so that the data common to a
    // block is decoded once.
    var weights = load_slice(weights_at, span.x, lane);
    var columns = load_columns(columns_at, span.x, part, 0u);
    for (var slice = span.x; slice < span.y; slice++) {
        stage_weights(weights, 0u, lane);
        if loads_columns {
            stage_columns(columns, four, part);
        }
        workgroupBarrier();
        if loads_columns {
            columns = load_columns(columns_at, slice, part, 1u);
        }
        multiply_slice(place);
        // The next half overwrites this one.
        workgroupBarrier();
        stage_weights(weights, 1u, lane);
        if loads_columns {
            stage_columns(columns, four, part);
        }
        workgroupBarrier();
        let next = min(slice + 1u, span.y - 1u);
        weights = load_slice(weights_at, next, lane);
        if loads_columns {
            columns = load_columns(columns_at, next, part, 0u);
        }
        multiply_slice(place);
        workgroupBarrier();
    }
    store_sums(tile, place);
}

// The vec4 of rows or columns that a lane loads, and which four of a half's k: eight adjacent lanes hit different memory banks.
fn lane_vec4(lane: u32) -> u32 {
    return lane / 16u * 4u + lane / 2u % 4u;
}

fn lane_part(lane: u32) -> u32 {
    return lane / 8u % 2u * 2u + lane % 2u;
}

fn load_columns(at: vec4<u32>, slice: u32, part: u32, half: u32) -> Columns {
    return Columns(
        column4(at.x, slice, part, half), column4(at.y, slice, part, half),
        column4(at.z, slice, part, half), column4(at.w, slice, part, half),
    );
}

fn stage_columns(c: Columns, four: u32, part: u32) {
    let q = four / COLUMN_LANES;
    let l = four % COLUMN_LANES;
    sh_x[q][part * 4u][l] = vec4(c.x0.x, c.x1.x, c.x2.x, c.x3.x);
    sh_x[q][part * 4u + 1u][l] = vec4(c.x0.y, c.x1.y, c.x2.y, c.x3.y);
    sh_x[q][part * 4u + 2u][l] = vec4(c.x0.z, c.x1.z, c.x2.z, c.x3.z);
    sh_x[q][part * 4u + 3u][l] = vec4(c.x0.w, c.x1.w, c.x2.w, c.x3.w);
}
