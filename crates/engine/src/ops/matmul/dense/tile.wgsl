// y[i, j] = base + scale * sum over k of a[i, k] * b[k, j]     one workgroup per tile of ROWS x COLUMNS results, 4 x 4 of them per lane
// DEPTH elements of each row and column are staged at a time; TEAMS teams of lanes each take a part of them and add their sums up at the end.
// With few tiles, p.chunks workgroups share one (split-K), each for a chunk of k, and write separate partial sums.
override ROWS: u32 = 64u;
override COLUMNS: u32 = 64u;
override DEPTH: u32 = 16u;
override TEAMS: u32 = 1u;
override WG: u32 = 256u;
//#use base

struct Params {
    m: u32,
    n: u32,
    k: u32,
    a_m: u32,
    a_k: u32,
    b_n: u32,
    b_k: u32,
    scale: f32,
    chunks: u32,
    // First column of a; row width and first column of y and its base.
    a_first: u32,
    y_row: u32,
    y_first: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> a: array<f32>;
@group(0) @binding(3) var<storage, read> b: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

override ROWS4: u32 = ROWS / 4u;
override COLUMNS4: u32 = COLUMNS / 4u;
override LANES: u32 = WG / TEAMS;
override STEPS: u32 = DEPTH / TEAMS;
override B_AT: u32 = DEPTH * ROWS4;

// Four adjacent rows in a vec4, position by position along k; then columns in the same way. In the end, sums of half of the teams.
var<workgroup> sh: array<vec4<f32>, DEPTH * (ROWS4 + COLUMNS4)>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let across = (p.n + COLUMNS - 1u) / COLUMNS;
    let tiles = across * ((p.m + ROWS - 1u) / ROWS);
    let tile = grid_index(group) % tiles;
    let chunk = grid_index(group) / tiles;
    let top = tile / across * ROWS;
    let left = tile % across * COLUMNS;
    // Chunks are multiples of DEPTH.
    let length = (p.k + DEPTH * p.chunks - 1u) / (DEPTH * p.chunks) * DEPTH;
    let end = min((chunk + 1u) * length, p.k);
    let team = lane / LANES;
    let i = lane % LANES / COLUMNS4;
    let j = lane % COLUMNS4;
    var sums = mat4x4<f32>();
    var staged = load_stage(top, left, vec2(chunk * length, end), lane);
    for (var first = chunk * length; first < end; first += DEPTH) {
        store_stage(staged, lane);
        workgroupBarrier();
        // The next terms are loaded while these are multiplied.
        if first + DEPTH < end {
            staged = load_stage(top, left, vec2(first + DEPTH, end), lane);
        }
        for (var k = team * STEPS; k < (team + 1u) * STEPS; k++) {
            let rows = sh[k * ROWS4 + i];
            let columns = sh[B_AT + k * COLUMNS4 + j];
            sums[0] += rows.x * columns;
            sums[1] += rows.y * columns;
            sums[2] += rows.z * columns;
            sums[3] += rows.w * columns;
        }
        workgroupBarrier();
    }
    for (var half = TEAMS / 2u; half > 0u; half /= 2u) {
        let at = lane % (half * LANES) * 4u;
        if team >= half && team < 2u * half {
            sh[at] = sums[0];
            sh[at + 1u] = sums[1];
            sh[at + 2u] = sums[2];
            sh[at + 3u] = sums[3];
        }
        workgroupBarrier();
        if team < half {
            sums += mat4x4<f32>(sh[at], sh[at + 1u], sh[at + 2u], sh[at + 3u]);
        }
        workgroupBarrier();
    }
    if team == 0u && chunk < p.chunks {
        let row = top + i * 4u;
        let column = left + j * 4u;
        write(chunk, row, column, sums[0]);
        write(chunk, row + 1u, column, sums[1]);
        write(chunk, row + 2u, column, sums[2]);
        write(chunk, row + 3u, column, sums[3]);
    }
}

// What a lane loads of DEPTH terms: at most two vec4s of rows and two of columns.
struct Staged {
    a_0: vec4<f32>,
    a_1: vec4<f32>,
    b_0: vec4<f32>,
    b_1: vec4<f32>,
}

fn load_stage(top: u32, left: u32, span: vec2<u32>, lane: u32) -> Staged {
    var staged: Staged;
    if lane < DEPTH * ROWS4 {
        staged.a_0 = load_a(top, span, lane);
    }
    if lane + WG < DEPTH * ROWS4 {
        staged.a_1 = load_a(top, span, lane + WG);
    }
    if lane < DEPTH * COLUMNS4 {
        staged.b_0 = load_b(left, span, lane);
    }
    if lane + WG < DEPTH * COLUMNS4 {
        staged.b_1 = load_b(left, span, lane + WG);
    }
    return staged;
}

fn store_stage(staged: Staged, lane: u32) {
    if lane < DEPTH * ROWS4 {
        sh[a_place(lane)] = staged.a_0;
    }
    if lane + WG < DEPTH * ROWS4 {
        sh[a_place(lane + WG)] = staged.a_1;
    }
    if lane < DEPTH * COLUMNS4 {
        sh[b_place(lane)] = staged.b_0;
    }
    if lane + WG < DEPTH * COLUMNS4 {
        sh[b_place(lane + WG)] = staged.b_1;
    }
}

fn a_place(n: u32) -> u32 {
    let at = place(n, ROWS4, p.a_k == 1u);
    return at.y * ROWS4 + at.x;
}

fn b_place(n: u32) -> u32 {
    let at = place(n, COLUMNS4, p.b_k == 1u);
    return B_AT + at.y * COLUMNS4 + at.x;
}

// Four rows or columns, and the position along k, that a lane loads: neighbouring lanes read neighbouring elements, transposed or not.
fn place(n: u32, fours: u32, along_k: bool) -> vec2<u32> {
    return select(vec2(n % fours, n / fours), vec2(n / DEPTH, n % DEPTH), along_k);
}

fn load_a(top: u32, span: vec2<u32>, n: u32) -> vec4<f32> {
    let offset = place(n, ROWS4, p.a_k == 1u);
    let row = top + offset.x * 4u;
    let k = span.x + offset.y;
    if k >= span.y {
        return vec4(0.0);
    }
    let at = k * p.a_k;
    return vec4(a_at(row, at), a_at(row + 1u, at), a_at(row + 2u, at), a_at(row + 3u, at));
}

fn a_at(row: u32, at: u32) -> f32 {
    if row >= p.m {
        return 0.0;
    }
    return a[p.a_first + row * p.a_m + at];
}

fn load_b(left: u32, span: vec2<u32>, n: u32) -> vec4<f32> {
    let offset = place(n, COLUMNS4, p.b_k == 1u);
    let column = left + offset.x * 4u;
    let k = span.x + offset.y;
    if k >= span.y {
        return vec4(0.0);
    }
    let at = k * p.b_k;
    return vec4(b_at(column, at), b_at(column + 1u, at), b_at(column + 2u, at), b_at(column + 3u, at));
}

fn b_at(column: u32, at: u32) -> f32 {
    if column >= p.n {
        return 0.0;
    }
    return b[column * p.b_n + at];
}

fn write(chunk: u32, row: u32, column: u32, sums: vec4<f32>) {
    write1(chunk, row, column, sums.x);
    write1(chunk, row, column + 1u, sums.y);
    write1(chunk, row, column + 2u, sums.z);
    write1(chunk, row, column + 3u, sums.w);
}

fn write1(chunk: u32, row: u32, column: u32, sum: f32) {
    if row < p.m && column < p.n {
        let at = row * p.y_row + p.y_first + column;
        y[chunk * p.m * p.n + at] = base(at) + p.scale * sum;
    }
}
