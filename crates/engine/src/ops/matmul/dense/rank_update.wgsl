// y[i, j] = base + scale * sum over k of a[i, k] * b[k, j]     for few terms k
// One workgroup per 16 rows and 256 columns; a lane has four of each, and keeps 16 terms of its columns in registers.
override STAGED: u32 = 0u;
//#use orientation
//#use base4

struct Params {
    rows: u32,
    columns4: u32,
    k4: u32,
    scale: f32,
    chunks: u32,
    // Row width and first column of a, then of y and its base, in vec4s.
    a_row4: u32,
    a_first4: u32,
    y_row4: u32,
    y_first4: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;

// vec4s of columns of a workgroup, and of terms at a time.
const COLUMNS4 = 64u;
const TERMS4 = 4u;

// 16 terms of 256 columns, if lanes cannot read neighbouring elements of b themselves.
var<workgroup> sh: array<vec4<f32>, 1024>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let across = (p.columns4 + COLUMNS4 - 1u) / COLUMNS4;
    let left = grid_index(group) % across * COLUMNS4;
    let row = grid_index(group) / across * 16u + lane / COLUMNS4;
    let column = left + lane % COLUMNS4;
    // Rows and columns past the end repeat the last ones and are not written.
    let j = min(column, p.columns4 - 1u);
    let i0 = min(row, p.rows - 1u);
    let i1 = min(row + 4u, p.rows - 1u);
    let i2 = min(row + 8u, p.rows - 1u);
    let i3 = min(row + 12u, p.rows - 1u);
    let base0 = base4(i0 * p.y_row4 + p.y_first4 + j);
    let base1 = base4(i1 * p.y_row4 + p.y_first4 + j);
    let base2 = base4(i2 * p.y_row4 + p.y_first4 + j);
    let base3 = base4(i3 * p.y_row4 + p.y_first4 + j);
    var s0 = vec4(0.0);
    var s1 = vec4(0.0);
    var s2 = vec4(0.0);
    var s3 = vec4(0.0);
    for (var first = 0u; first < p.k4; first += TERMS4) {
        if STAGED == 1u {
            workgroupBarrier();
            stage(left, first, lane);
            workgroupBarrier();
        }
        let m0 = own_block(first, 0u, j, lane % COLUMNS4);
        let m1 = own_block(first, 1u, j, lane % COLUMNS4);
        let m2 = own_block(first, 2u, j, lane % COLUMNS4);
        let m3 = own_block(first, 3u, j, lane % COLUMNS4);
        s0 += dot16(i0, first, m0, m1, m2, m3);
        s1 += dot16(i1, first, m0, m1, m2, m3);
        s2 += dot16(i2, first, m0, m1, m2, m3);
        s3 += dot16(i3, first, m0, m1, m2, m3);
    }
    write(row, column, base0, s0);
    write(row + 4u, column, base1, s1);
    write(row + 8u, column, base2, s2);
    write(row + 12u, column, base3, s3);
}

// Copies 16 terms of each column, which are neighbours in memory.
fn stage(left: u32, first: u32, lane: u32) {
    for (var i = lane; i < COLUMNS4 * 4u * TERMS4; i += 256u) {
        let column = min(left * 4u + i / TERMS4, p.columns4 * 4u - 1u);
        sh[place(i)] = b[column * p.k4 + min(first + i % TERMS4, p.k4 - 1u)];
    }
}

// Exchanges vec4s so that eight lanes reading every sixteenth use different banks.
fn place(i: u32) -> u32 {
    return i ^ ((i >> 4u) & 7u);
}

// Four terms of a lane's columns.
fn own_block(first: u32, k: u32, column: u32, staged: u32) -> mat4x4<f32> {
    if STAGED == 1u {
        let at = staged * 16u + k;
        return mat4x4<f32>(sh[place(at)], sh[place(at + 4u)], sh[place(at + 8u)], sh[place(at + 12u)]);
    }
    return block(min(first + k, p.k4 - 1u), column);
}

fn dot16(row: u32, first: u32, m0: mat4x4<f32>, m1: mat4x4<f32>, m2: mat4x4<f32>, m3: mat4x4<f32>) -> vec4<f32> {
    let at = row * p.a_row4 + p.a_first4;
    return times(term(at, first), m0)
        + times(term(at, first + 1u), m1)
        + times(term(at, first + 2u), m2)
        + times(term(at, first + 3u), m3);
}

fn term(at: u32, k4: u32) -> vec4<f32> {
    return select(vec4(0.0), a[at + min(k4, p.k4 - 1u)], k4 < p.k4);
}

fn write(row: u32, column: u32, base: vec4<f32>, sum: vec4<f32>) {
    if row < p.rows && column < p.columns4 {
        y[row * p.y_row4 + p.y_first4 + column] = base + p.scale * sum;
    }
}
