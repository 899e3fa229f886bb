@group(0) @binding(3) var<storage, read> x: array<f32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read> scale: array<f32>;

fn function(i: u32) -> f32 {
    let column = i % p.width;
    return (x[i] - bias[column]) * scale[column];
}
