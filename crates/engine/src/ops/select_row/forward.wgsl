// y[0, j] = x[which, j]     one lane per element
//#use which
struct Params {
    width: u32,
    rows: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let j = grid_index(group) * 256u + index;
    if j < p.width {
        y[j] = x[min(which(), p.rows - 1u) * p.width + j];
    }
}
