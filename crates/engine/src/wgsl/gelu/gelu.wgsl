// Activations by exponentials of bounded arguments: safe for any argument, and more accurate than a device's tanh is required to be.

// tanh(z), with z clamped to where f32 rounds the result to 1.
fn safe_tanh(z: f32) -> f32 {
    return 1.0 - 2.0 / (1.0 + exp(2.0 * clamp(z, -10.0, 10.0)));
}

// (1 + tanh(sqrt(2/pi) * (z + 0.044715 z^3))) / 2 as a logistic function; 0 or 1 in f32 where z is clamped.
fn gelu_gate(z: f32) -> f32 {
    let x = clamp(z, -9.0, 9.0);
    return 1.0 / (1.0 + exp(-1.5957691216 * (x + 0.044715 * x * x * x)));
}

// 1 / (1 + e^-z); 0 in f32 where z is clamped below, 1 above.
fn logistic(z: f32) -> f32 {
    return 1.0 / (1.0 + exp(-clamp(z, -80.0, 80.0)));
}

fn gelu(z: f32) -> f32 {
    return z * gelu_gate(z);
}

fn gelu_slope(z: f32) -> f32 {
    let gate = gelu_gate(z);
    let x = clamp(z, -9.0, 9.0);
    return gate + x * gate * (1.0 - gate) * 1.5957691216 * (1.0 + 0.134145 * x * x);
}
