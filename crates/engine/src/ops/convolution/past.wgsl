// Causal depthwise convolution: y[t, c] = sum of w[c, j] * x[t - taps + 1 + j, c], zeros before the first row     one lane per output element
struct Params {
    len: u32,
    columns: u32,
    taps: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let i = grid_index(group) * 256u + index;
    if i >= p.len {
        return;
    }
    let row = i / p.columns;
    let column = i % p.columns;
    var sum = 0.0;
    for (var j = 0u; j < p.taps; j++) {
        if row + j + 1u >= p.taps {
            sum += x[(row + j + 1u - p.taps) * p.columns + column] * w[column * p.taps + j];
        }
    }
    y[i] = sum;
}
