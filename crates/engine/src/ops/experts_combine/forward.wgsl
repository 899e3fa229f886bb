// y[t, i] = sum over j of w[t, j] * z[t, j, i], j in order     one lane per element of y
struct Params {
    width: u32,
    chosen: u32,
    count: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> z: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let at = grid_index(group) * 256u + index;
    if at >= p.count {
        return;
    }
    let first = at / p.width * p.chosen;
    let i = at % p.width;
    var sum = 0.0;
    for (var slot = first; slot < first + p.chosen; slot++) {
        sum += w[slot] * z[slot * p.width + i];
    }
    y[at] = sum;
}
