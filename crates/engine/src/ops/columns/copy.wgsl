// y[t, dest + j] = x[t, source + j], or zero if source_row is 0     one lane per element
struct Params {
    len: u32,
    width: u32,
    source: u32,
    source_row: u32,
    dest: u32,
    dest_row: u32,
}

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let i = grid_index(group) * 256u + index;
    if i >= p.len {
        return;
    }
    let row = i / p.width;
    let column = i % p.width;
    var value = 0.0;
    if p.source_row > 0u {
        value = x[row * p.source_row + p.source + column];
    }
    y[row * p.dest_row + p.dest + column] = value;
}
