// y[t, j] = sum over i with row_ids[i] = t of x[i, j], in order     one lane per element
struct Params {
    len: u32,
    width: u32,
    rows: u32,
    count: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> row_ids: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let at = grid_index(group) * 256u + index;
    if at >= p.len {
        return;
    }
    let row = at / p.width;
    var sum = 0.0;
    for (var i = 0u; i < p.count; i++) {
        if row_ids[i] == row {
            sum += x[i * p.width + at % p.width];
        }
    }
    y[at] = sum;
}
