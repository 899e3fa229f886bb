//#use gate
@group(0) @binding(3) var<storage, read> a: array<f32>;
@group(0) @binding(4) var<storage, read> b: array<f32>;

fn function(i: u32) -> f32 {
    return gate(a[i]) * b[i];
}
