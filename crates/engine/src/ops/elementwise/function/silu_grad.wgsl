//#use gate
@group(0) @binding(3) var<storage, read> x: array<f32>;
@group(0) @binding(4) var<storage, read> dy: array<f32>;

fn function(i: u32) -> f32 {
    return dy[i] * gate_slope(x[i]);
}
