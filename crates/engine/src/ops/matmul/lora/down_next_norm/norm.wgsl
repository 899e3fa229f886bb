// A norm follows the residual add.
@group(0) @binding(9) var<storage, read> w2: array<vec4<f32>>;

fn next_weight(i: u32) -> vec4<f32> {
    return w2[i];
}

fn next_norm(squares: f32) -> f32 {
    return inverseSqrt(squares + p.eps);
}
