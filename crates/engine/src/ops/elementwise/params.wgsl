// What all elementwise kernels are told; functions read it too.

struct Params {
    len: u32,
    // Row width of the result.
    width: u32,
    // Row width of the input whose rows are longer or shorter than the result's.
    other: u32,
    // First column of the slice in the longer rows.
    offset: u32,
    constant: f32,
    second: f32,
}

@group(0) @binding(0) var<uniform> p: Params;

