@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;

fn prologue(column: u32, lane: Lane) {
}

fn prologue4(column: u32, four: u32) -> vec4<f32> {
    return x[column * (p.width / 4u) + four];
}
