// Columns whose length is a multiple of a unit, read as vec4.
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;

fn x4(column: u32, k: u32) -> vec4<f32> {
    return x[(column * p.width + k) / 4u];
}
