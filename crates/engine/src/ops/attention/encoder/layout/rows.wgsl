// As f32; the tokens of a head are contiguous.
@group(0) @binding(5) var<storage, read_write> x: array<vec4<f32>>;

fn store(head: vec4<f32>, start: u32, lane: u32, kind: u32) {
    x[start + lane] = head;
}
