// Columns of x as f16 in the order of the weights' units, each with the exponent of the power of two it was divided by: the output
// of matmul/gemm/prepare.wgsl. Columns with an odd number of units are padded with zeros.
enable f16;
@group(0) @binding(3) var<storage, read> x: array<vec4<f16>>;

fn unit_pairs() -> u32 {
    return (depth_units() + 1u) / 2u;
}

// The index of a column's first vec4.
fn column_start(column: u32) -> u32 {
    return column * (unit_pairs() * 16u + 2u);
}

fn x_scale(column: u32) -> f32 {
    let exponent = i32(x[column_start(column) + unit_pairs() * 16u].x);
    return bitcast<f32>(u32(exponent + 127) << 23u);
}
