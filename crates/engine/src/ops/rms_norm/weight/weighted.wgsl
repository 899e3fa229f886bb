@group(0) @binding(4) var<storage, read> w: array<f32>;

fn weight(j: u32) -> f32 {
    return w[j];
}
