@group(0) @binding(5) var<storage, read> b: array<f32>;

fn bias(j: u32) -> f32 {
    return b[j];
}
