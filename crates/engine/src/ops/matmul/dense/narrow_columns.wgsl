// y[i, j] = base + scale * sum over k of a[i, k] * b[k, j]     for few columns j
// A lane sums a share of k for eight rows and four columns; lanes next to each other have other columns, then other shares of k. A
// workgroup has TEAMS teams of eight rows. p.chunks workgroups share a sum (split-K) and write separate partial sums.
override COLUMNS4: u32 = 4u;
override TEAMS: u32 = 1u;
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

const ROWS = 8u;
// Shares of k.
override SHARES: u32 = 256u / (COLUMNS4 * TEAMS);

// The sums of half of the shares, row by row.
var<workgroup> sh: array<vec4<f32>, 1024>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tiles = (p.rows + ROWS * TEAMS - 1u) / (ROWS * TEAMS);
    let chunk = grid_index(group) / tiles;
    let column = lane % COLUMNS4;
    let share = lane / COLUMNS4 % SHARES;
    let team = lane / (COLUMNS4 * SHARES);
    let top = (grid_index(group) % tiles * TEAMS + team) * ROWS;
    let length = (p.k4 + p.chunks - 1u) / p.chunks;
    let end = min((chunk + 1u) * length, p.k4);
    // Rows and columns past the end repeat the last ones and are not written.
    let j = min(column, p.columns4 - 1u);
    let last = p.rows - 1u;
    let a0 = p.a_first4 + min(top, last) * p.a_row4;
    let a1 = p.a_first4 + min(top + 1u, last) * p.a_row4;
    let a2 = p.a_first4 + min(top + 2u, last) * p.a_row4;
    let a3 = p.a_first4 + min(top + 3u, last) * p.a_row4;
    let a4 = p.a_first4 + min(top + 4u, last) * p.a_row4;
    let a5 = p.a_first4 + min(top + 5u, last) * p.a_row4;
    let a6 = p.a_first4 + min(top + 6u, last) * p.a_row4;
    let a7 = p.a_first4 + min(top + 7u, last) * p.a_row4;
    var s0 = vec4(0.0);
    var s1 = vec4(0.0);
    var s2 = vec4(0.0);
    var s3 = vec4(0.0);
    var s4 = vec4(0.0);
    var s5 = vec4(0.0);
    var s6 = vec4(0.0);
    var s7 = vec4(0.0);
    for (var k = chunk * length + share; k < end; k += SHARES) {
        let x0 = a[a0 + k];
        let x1 = a[a1 + k];
        let x2 = a[a2 + k];
        let x3 = a[a3 + k];
        let x4 = a[a4 + k];
        let x5 = a[a5 + k];
        let x6 = a[a6 + k];
        let x7 = a[a7 + k];
        let m = block(k, j);
        s0 += times(x0, m);
        s1 += times(x1, m);
        s2 += times(x2, m);
        s3 += times(x3, m);
        s4 += times(x4, m);
        s5 += times(x5, m);
        s6 += times(x6, m);
        s7 += times(x7, m);
    }
    for (var half = SHARES / 2u; half > 0u; half /= 2u) {
        let at = (team * half + share % half) * COLUMNS4 + column;
        if share >= half && share < 2u * half {
            sh[at] = s0;
            sh[at + 128u] = s1;
            sh[at + 256u] = s2;
            sh[at + 384u] = s3;
            sh[at + 512u] = s4;
            sh[at + 640u] = s5;
            sh[at + 768u] = s6;
            sh[at + 896u] = s7;
        }
        workgroupBarrier();
        if share < half {
            s0 += sh[at];
            s1 += sh[at + 128u];
            s2 += sh[at + 256u];
            s3 += sh[at + 384u];
            s4 += sh[at + 512u];
            s5 += sh[at + 640u];
            s6 += sh[at + 768u];
            s7 += sh[at + 896u];
        }
        workgroupBarrier();
    }
    if share == 0u && column < p.columns4 && chunk < p.chunks {
        write(chunk, top, column, s0);
        write(chunk, top + 1u, column, s1);
        write(chunk, top + 2u, column, s2);
        write(chunk, top + 3u, column, s3);
        write(chunk, top + 4u, column, s4);
        write(chunk, top + 5u, column, s5);
        write(chunk, top + 6u, column, s6);
        write(chunk, top + 7u, column, s7);
    }
}

fn write(chunk: u32, row: u32, column: u32, sum: vec4<f32>) {
    if row < p.rows {
        let at = row * p.y_row4 + p.y_first4 + column;
        y[chunk * p.rows * p.columns4 + at] = base4(at) + p.scale * sum;
    }
}
