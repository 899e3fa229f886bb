// y[t, j] = x[t, j] / sqrt(mean(x[t, :]^2) + eps) * w[j]     one workgroup per row t
//#use weight
// Before the arrays in workgroup memory of the next part: naga fails on overrides that come later.
//#use output
//#use reduce

struct Params {
    width: u32,
    eps: f32,
    rows: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let row = grid_index(group);
    if row >= p.rows {
        return;
    }
    let start = row * p.width;
    var squares = 0.0;
    for (var j = lane.index; j < p.width; j += WG) {
        let value = x[start + j];
        squares += value * value;
    }
    let scale = inverseSqrt(wg_sum(squares, lane) / f32(p.width) + p.eps);
    put(row, scale, lane);
}
