// No norm follows the residual sum.
fn weight_after(i: u32) -> vec4<f32> {
    return vec4(1.0);
}

fn norm_after(squares: f32) -> f32 {
    return 1.0;
}
