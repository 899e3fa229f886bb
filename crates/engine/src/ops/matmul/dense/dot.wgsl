// y[i, j] = base + scale * sum over k of a[i, k] * b[k, j]     one workgroup per result
//#use reduce
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

fn kernel(group: vec3<u32>, lane: Lane) {
    let at = grid_index(group);
    if at >= p.m * p.n {
        return;
    }
    let a_row = p.a_first + at / p.n * p.a_m;
    let b_row = at % p.n * p.b_n;
    var sum = 0.0;
    for (var k = lane.index; k < p.k; k += WG) {
        sum += a[a_row + k * p.a_k] * b[b_row + k * p.b_k];
    }
    let total = wg_sum(sum, lane);
    if lane.index == 0u {
        y[at] = base(at) + p.scale * total;
    }
}
