//#use gelu
@group(0) @binding(3) var<storage, read> x: array<f32>;

fn function(i: u32) -> f32 {
    return x[i] * logistic(x[i]);
}
