@group(0) @binding(auto) var<storage, read> addend: array<f32>;

fn base(i: u32) -> f32 {
    return addend[i];
}
