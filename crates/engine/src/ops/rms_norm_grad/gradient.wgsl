// dx = base + rho * (g - x * rho^2 * mean(g * x)),  rho = 1 / sqrt(mean(x^2) + eps),  g = dy * w     one workgroup per norm
//#use reduce
//#use weight
//#use base

struct Params {
    width: u32,
    eps: f32,
    rows: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let row = grid_index(group);
    if row >= p.rows {
        return;
    }
    let start = row * p.width;
    var squares = 0.0;
    var products = 0.0;
    for (var j = lane.index; j < p.width; j += WG) {
        let value = x[start + j];
        squares += value * value;
        products += value * dy[start + j] * weight(j);
    }
    let rho = inverseSqrt(wg_sum(squares, lane) / f32(p.width) + p.eps);
    let mean = wg_sum(products, lane) / f32(p.width);
    for (var j = lane.index; j < p.width; j += WG) {
        dx[start + j] = base(start + j) + rho * (dy[start + j] * weight(j) - x[start + j] * rho * rho * mean);
    }
}
