// The gate of SwiGLU, and its derivative.
//#use gelu
fn gate(z: f32) -> f32 {
    return z * logistic(z);
}

fn gate_slope(z: f32) -> f32 {
    let s = logistic(z);
    return s * (1.0 + clamp(z, -80.0, 80.0) * (1.0 - s));
}
