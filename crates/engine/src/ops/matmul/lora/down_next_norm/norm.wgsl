// A norm follows the residual sum.
@group(0) @binding(9) var<storage, read> w2: array<vec4<f32>>;

fn weight_after(i: u32) -> vec4<f32> {
    return w2[i];
}

fn norm_after(squares: f32) -> f32 {
    return inverseSqrt(squares + p.eps);
}
