// A part of a weight as F32 with k as the outer dimension (k-major)     one lane per unit
//#use weights
//#use quant
//#use dequantised

struct Params {
//#use slab
    // The part: its first row, counted from the start of the slab, and first unit of each row, and their numbers.
    start_row: u32,
    row_count: u32,
    start_unit: u32,
    unit_count: u32,
    // Floats per k of the result.
    stride: u32,
}

@group(0) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    dequantise(grid_index(group), index);
}

// A unit of the part; rows past the end of the slab read the last one.
fn unit_of(row: u32, unit: u32) -> array<vec4<f32>, 8> {
    return load_unit(min(p.start_row + row, p.rows - 1u) * p.row_units + p.start_unit + unit);
}
