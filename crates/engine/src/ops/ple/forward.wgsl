// y = (sqrt(P) * row + rms(projection / sqrt(d)) * w) / sqrt(2)     one workgroup per slice of P elements
//#use reduce

struct Params {
    width: u32,
    eps: f32,
    slices: u32,
    row_factor: f32,
    projection_factor: f32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> rows: array<f32>;
@group(0) @binding(3) var<storage, read> projection: array<f32>;
@group(0) @binding(4) var<storage, read> w: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let slice = grid_index(group);
    if slice >= p.slices {
        return;
    }
    let start = slice * p.width;
    var squares = 0.0;
    for (var j = lane.index; j < p.width; j += WG) {
        let value = projection[start + j] * p.projection_factor;
        squares += value * value;
    }
    let rho = inverseSqrt(wg_sum(squares, lane) / f32(p.width) + p.eps) * p.projection_factor;
    for (var j = lane.index; j < p.width; j += WG) {
        let sum = rows[start + j] * p.row_factor + projection[start + j] * rho * w[j];
        y[start + j] = sum * 0.70710678;
    }
}
