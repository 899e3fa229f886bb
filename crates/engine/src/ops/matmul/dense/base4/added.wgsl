@group(0) @binding(auto) var<storage, read> addend: array<vec4<f32>>;

fn base4(i: u32) -> vec4<f32> {
    return addend[i];
}
