// gelu(a) * b
//#use gelu
@group(0) @binding(3) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> b: array<vec4<f32>>;

fn prologue(column: u32, lane: Lane) {
}

fn prologue4(column: u32, four: u32) -> vec4<f32> {
    let at = column * (p.width / 4u) + four;
    let gate = a[at];
    return vec4(gelu(gate.x), gelu(gate.y), gelu(gate.z), gelu(gate.w)) * b[at];
}
