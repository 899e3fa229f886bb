// No norm follows the residual add.
fn next_weight(i: u32) -> vec4<f32> {
    return vec4(1.0);
}

fn next_norm(squares: f32) -> f32 {
    return 1.0;
}
