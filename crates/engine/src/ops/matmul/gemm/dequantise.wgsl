// A part of a weight as F32, row-major or transposed     one lane per unit
//#use weights
//#use quant
//#use dequantised

struct Params {
//#use slab
    // The part: the first row, counted from the start of the slab, or the first unit of each row; and their number.
    start: u32,
    len: u32,
    // Floats per row of the result.
    stride: u32,
}

@group(0) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    dequantise(grid_index(group) * 256u + index);
}
