// y[t, f, o] = sum of w[o, c, a, b] * x[2t + a - 1, 2f + b - 1, c], zeros around     one lane per result
struct Params {
    rows: u32,
    columns: u32,
    channels: u32,
    made: u32,
    len: u32,
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
    let out = i % p.made;
    let place = i / p.made;
    let across = (p.columns + 1u) / 2u;
    var sum = 0.0;
    for (var tap = 0u; tap < 9u; tap++) {
        // The place before the first one wraps around, and so is outside too.
        let row = place / across * 2u + tap / 3u - 1u;
        let column = place % across * 2u + tap % 3u - 1u;
        if row >= p.rows || column >= p.columns {
            continue;
        }
        let start = (row * p.columns + column) * p.channels;
        let by = out * p.channels * 9u + tap;
        for (var c = 0u; c < p.channels; c++) {
            sum += x[start + c] * w[by + c * 9u];
        }
    }
    y[i] = sum;
}
