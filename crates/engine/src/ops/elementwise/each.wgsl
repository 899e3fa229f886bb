// y[i] = function(i)     one lane per element; the part `function` declares its inputs, from binding 3 on
//#use function

@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let i = grid_index(group) * 256u + index;
    if i < p.len {
        y[i] = function(i);
    }
}
