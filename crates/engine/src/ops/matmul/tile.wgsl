// y[i, j] = base + scale * sum over k of a[i, k] * b[k, j]     one workgroup per tile of SIDE by SIDE results
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
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> a: array<f32>;
@group(0) @binding(3) var<storage, read> b: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const SIDE: u32 = 16u;

// Rows are one longer than a tile, so that reads down a column fall into different banks.
var<workgroup> sh_a: array<f32, SIDE * (SIDE + 1u)>;
var<workgroup> sh_b: array<f32, SIDE * (SIDE + 1u)>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = grid_index(group);
    let across = (p.n + SIDE - 1u) / SIDE;
    let top = tile / across * SIDE;
    let left = tile % across * SIDE;
    if top >= p.m {
        return;
    }
    let slow = lane / SIDE;
    let fast = lane % SIDE;
    var sum = 0.0;
    for (var first = 0u; first < p.k; first += SIDE) {
        load_a(top, first, slow, fast);
        load_b(left, first, slow, fast);
        workgroupBarrier();
        for (var k = 0u; k < SIDE; k++) {
            sum += sh_a[slow * (SIDE + 1u) + k] * sh_b[fast * (SIDE + 1u) + k];
        }
        workgroupBarrier();
    }
    let i = top + slow;
    let j = left + fast;
    if i < p.m && j < p.n {
        y[i * p.n + j] = base(i * p.n + j) + p.scale * sum;
    }
}

// Neighbouring lanes read neighbouring numbers, whichever way the matrix lies.
fn load_a(top: u32, first: u32, slow: u32, fast: u32) {
    let along_k = p.a_k == 1u;
    let row = select(fast, slow, along_k);
    let column = select(slow, fast, along_k);
    var value = 0.0;
    if top + row < p.m && first + column < p.k {
        value = a[(top + row) * p.a_m + (first + column) * p.a_k];
    }
    sh_a[row * (SIDE + 1u) + column] = value;
}

fn load_b(left: u32, first: u32, slow: u32, fast: u32) {
    let along_k = p.b_k == 1u;
    let row = select(fast, slow, along_k);
    let column = select(slow, fast, along_k);
    var value = 0.0;
    if left + row < p.n && first + column < p.k {
        value = b[(left + row) * p.b_n + (first + column) * p.b_k];
    }
    sh_b[row * (SIDE + 1u) + column] = value;
}
