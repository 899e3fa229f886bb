// What block formats are written with: the slab's words, and bytes as numbers. The kernel's parameters name the planes.
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;

fn word(i: u32) -> u32 {
    return w[i / 4u][i % 4u];
}

fn bytes4(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4(word) >> vec4(0u, 8u, 16u, 24u)) & vec4(255u));
}

// The half number i of a plane of halves.
fn half_at(plane: u32, i: u32) -> f32 {
    let pair = unpack2x16float(word(plane + i / 2u));
    return select(pair.x, pair.y, i % 2u == 1u);
}
