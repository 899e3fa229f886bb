// The gate of GeGLU, and its derivative.
//#use gelu
fn gate(z: f32) -> f32 {
    return gelu(z);
}

fn gate_slope(z: f32) -> f32 {
    return gelu_slope(z);
}
