// gelu(a) * b; each row of ab is a row of a followed by a row of b.
//#use gelu
@group(0) @binding(3) var<storage, read> ab: array<vec4<f32>>;

fn prologue(column: u32, lane: Lane) {
}

fn prologue4(column: u32, four: u32) -> vec4<f32> {
    let at = column * (p.width / 2u) + four;
    let a = ab[at];
    return vec4(gelu(a.x), gelu(a.y), gelu(a.z), gelu(a.w)) * ab[at + p.width / 4u];
}
