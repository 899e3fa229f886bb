// y[t, j] = (x[t, j] - mean(x[t, :])) / sqrt(variance(x[t, :]) + eps) * w[j] + b[j]     one workgroup per row t
//#use reduce
//#use bias

struct Params {
    width: u32,
    eps: f32,
    rows: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

fn kernel(group: vec3<u32>, lane: Lane) {
    let row = grid_index(group);
    if row >= p.rows {
        return;
    }
    let start = row * p.width;
    var sum = 0.0;
    for (var j = lane.index; j < p.width; j += WG) {
        sum += x[start + j];
    }
    let mean = wg_sum(sum, lane) / f32(p.width);
    // The variance around the mean, not mean(x^2) - mean^2, which cancels.
    var squares = 0.0;
    for (var j = lane.index; j < p.width; j += WG) {
        let value = x[start + j] - mean;
        squares += value * value;
    }
    let scale = inverseSqrt(wg_sum(squares, lane) / f32(p.width) + p.eps);
    for (var j = lane.index; j < p.width; j += WG) {
        y[start + j] = (x[start + j] - mean) * scale * w[j] + bias(j);
    }
}
