// y[t, j] = a[t, j] * wa[j] / sqrt(mean(a[t, :]^2) + eps) + the same of b and wb     one workgroup per row t
//#use reduce

struct Params {
    width: u32,
    eps: f32,
    rows: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> a: array<f32>;
@group(0) @binding(3) var<storage, read> wa: array<f32>;
@group(0) @binding(4) var<storage, read> b: array<f32>;
@group(0) @binding(5) var<storage, read> wb: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let row = grid_index(group);
    if row >= p.rows {
        return;
    }
    let start = row * p.width;
    var squares = vec2(0.0);
    for (var j = lane.index; j < p.width; j += WG) {
        let both = vec2(a[start + j], b[start + j]);
        squares += both * both;
    }
    let means = vec2(wg_sum(squares.x, lane), wg_sum(squares.y, lane)) / f32(p.width);
    let rho = inverseSqrt(means + p.eps);
    for (var j = lane.index; j < p.width; j += WG) {
        y[start + j] = a[start + j] * rho.x * wa[j] + b[start + j] * rho.y * wb[j];
    }
}
