// The RMS norm before the matmul.
@group(0) @binding(5) var<storage, read> w2: array<vec4<f32>>;

fn next_weight(column: u32) -> vec4<f32> {
    return w2[column / 4u];
}

fn next_scale(squares: f32, lane: Lane) -> f32 {
    return inverseSqrt(group_sum_again(squares, lane) * PART + p.eps);
}
