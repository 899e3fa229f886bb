@group(0) @binding(5) var<storage, read> given: array<f32>;

fn base(i: u32) -> f32 {
    return given[i];
}
