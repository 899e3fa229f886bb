// y[i, j] = x[row_ids[i], j], zero if there is no such row     one lane per element
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
    let i = grid_index(group) * 256u + index;
    if i >= p.len {
        return;
    }
    let row = row_ids[i / p.width];
    var value = 0.0;
    if row < p.rows {
        value = x[row * p.width + i % p.width];
    }
    y[i] = value;
}
