// y[i] = base + sum over s of parts[s, i]     one lane per result
//#use base

struct Params {
    results: u32,
    chunks: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> parts: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let i = grid_index(group) * 256u + index;
    if i >= p.results {
        return;
    }
    var sum = 0.0;
    for (var s = 0u; s < p.chunks; s++) {
        sum += parts[s * p.results + i];
    }
    y[i] = base(i) + sum;
}
