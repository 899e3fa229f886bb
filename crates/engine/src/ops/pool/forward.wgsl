// y[row, j] = each * sum of x[position, j] over the positions of the row's square     one lane per element
struct Params {
    len: u32,
    width: u32,
    columns: u32,
    side: u32,
    each: f32,
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
    let across = p.columns / p.side;
    let first = row / across * p.side * p.columns + row % across * p.side;
    var sum = 0.0;
    for (var dy = 0u; dy < p.side; dy++) {
        for (var dx = 0u; dx < p.side; dx++) {
            sum += x[(first + dy * p.columns + dx) * p.width + i % p.width];
        }
    }
    y[i] = sum * p.each;
}
