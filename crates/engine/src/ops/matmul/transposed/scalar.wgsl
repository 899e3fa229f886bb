// x[t, k] = sum over r of y[t, r] * W[r, k]     one workgroup per tile of two units of k by POSITIONS positions t, 4 x 4 per lane. 32 rows are
// staged in workgroup memory at a time, weights as f32.
//#use weights
//#use quant

const ROWS: u32 = 32u;
// vec4s along k.
const GROUPS: u32 = 16u;
// 16, 32 or 64; sixteen neighbouring lanes cover the vec4s, so that each lane has four positions.
override POSITIONS: u32 = 64u;
override WG: u32 = POSITIONS * 4u;
// One if an earlier slab has written the sums of its rows.
override ADD: u32 = 0u;
// Split-K chunks; each workgroup writes the sums of its own.
override CHUNKS: u32 = 1u;

struct Params {
//#use slab
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(3) var<storage, read> y: array<f32>;
@group(0) @binding(4) var<storage, read_write> x: array<f32>;

// vec4s along k: [row][vec4]. vec4s along r: [four rows][position].
var<workgroup> sh_w: array<vec4<f32>, ROWS * GROUPS>;
var<workgroup> sh_y: array<vec4<f32>, ROWS / 4u * POSITIONS>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tiles = (p.count + POSITIONS - 1u) / POSITIONS;
    let all = tiles * ((p.row_units + 1u) / 2u);
    let chunk = grid_index(group) / all;
    if chunk >= CHUNKS {
        return;
    }
    // Neighbouring workgroups share weights.
    let first_position = grid_index(group) % all % tiles * POSITIONS;
    let first_unit = grid_index(group) % all / tiles * 2u;
    let share = (p.rows + ROWS * CHUNKS - 1u) / (ROWS * CHUNKS) * ROWS;
    let end = min(p.rows, (chunk + 1u) * share);
    let g = lane % GROUPS;
    let position = lane / GROUPS;
    let step = POSITIONS / 4u;
    var sums0 = vec4(0.0);
    var sums1 = vec4(0.0);
    var sums2 = vec4(0.0);
    var sums3 = vec4(0.0);
    for (var first = chunk * share; first < end; first += ROWS) {
        stage_weights(first, first_unit, lane);
        stage_positions(first_position, first, lane);
        workgroupBarrier();
        for (var r = 0u; r < ROWS / 4u; r++) {
            let w0 = sh_w[weight_slot(r * 4u, g)];
            let w1 = sh_w[weight_slot(r * 4u + 1u, g)];
            let w2 = sh_w[weight_slot(r * 4u + 2u, g)];
            let w3 = sh_w[weight_slot(r * 4u + 3u, g)];
            let y0 = sh_y[y_slot(r, position)];
            let y1 = sh_y[y_slot(r, position + step)];
            let y2 = sh_y[y_slot(r, position + step * 2u)];
            let y3 = sh_y[y_slot(r, position + step * 3u)];
            sums0 += w0 * y0.x + w1 * y0.y + w2 * y0.z + w3 * y0.w;
            sums1 += w0 * y1.x + w1 * y1.y + w2 * y1.z + w3 * y1.w;
            sums2 += w0 * y2.x + w1 * y2.y + w2 * y2.z + w3 * y2.w;
            sums3 += w0 * y3.x + w1 * y3.y + w2 * y3.z + w3 * y3.w;
        }
        // The next rows overwrite these.
        workgroupBarrier();
    }
    let unit = first_unit + g / 8u;
    if unit < p.row_units {
        let k = unit_column(unit, g % 8u);
        let dest = Dest(chunk, first_position + position, k);
        store4(dest, 0u, sums0);
        store4(dest, step, sums1);
        store4(dest, step * 2u, sums2);
        store4(dest, step * 3u, sums3);
    }
}

// Neighbouring lanes write neighbouring units, or neighbouring rows of one position; the xor avoids bank conflicts.
fn weight_slot(row: u32, g: u32) -> u32 {
    return row * GROUPS + (g ^ ((row * 2u + g / 8u) % 8u));
}

fn y_slot(four: u32, position: u32) -> u32 {
    return four * POSITIONS + (position ^ four);
}

// Rows past the end add nothing because y is zero there, and a unit past the end is not stored: both read the last one.
fn stage_weights(first: u32, first_unit: u32, lane: u32) {
    for (var i = lane; i < ROWS * 2u; i += WG) {
        let r = i / 2u;
        let g = i % 2u * 8u;
        let unit = min(first_unit + i % 2u, p.row_units - 1u);
        let weights = load_unit(min(first + r, p.rows - 1u) * p.row_units + unit);
        sh_w[weight_slot(r, g)] = weights[0];
        sh_w[weight_slot(r, g + 1u)] = weights[1];
        sh_w[weight_slot(r, g + 2u)] = weights[2];
        sh_w[weight_slot(r, g + 3u)] = weights[3];
        sh_w[weight_slot(r, g + 4u)] = weights[4];
        sh_w[weight_slot(r, g + 5u)] = weights[5];
        sh_w[weight_slot(r, g + 6u)] = weights[6];
        sh_w[weight_slot(r, g + 7u)] = weights[7];
    }
}

fn stage_positions(first_position: u32, first: u32, lane: u32) {
    for (var i = lane; i < ROWS / 4u * POSITIONS; i += WG) {
        let four = i % (ROWS / 4u);
        let position = i / (ROWS / 4u);
        let start = min(first_position + position, p.count - 1u) * p.all_rows + p.first_row;
        let row = first + four * 4u;
        sh_y[y_slot(four, position)] = vec4(y1(start, row), y1(start, row + 1u), y1(start, row + 2u), y1(start, row + 3u));
    }
}

fn y1(start: u32, row: u32) -> f32 {
    return select(0.0, y[start + min(row, p.rows - 1u)], row < p.rows);
}

// Where a lane's first sums are stored.
struct Dest {
    chunk: u32,
    position: u32,
    k: u32,
}

// Rows of plain floats may end inside a vec4.
fn store4(dest: Dest, offset: u32, sums: vec4<f32>) {
    let position = dest.position + offset;
    if position < p.count {
        let row = dest.chunk * p.count + position;
        store(row, dest.k, sums.x);
        store(row, dest.k + 1u, sums.y);
        store(row, dest.k + 2u, sums.z);
        store(row, dest.k + 3u, sums.w);
    }
}

fn store(row: u32, k: u32, sum: f32) {
    if k < p.width {
        let at = row * p.width + k;
        if ADD == 1u {
            x[at] += sum;
        } else {
            x[at] = sum;
        }
    }
}
