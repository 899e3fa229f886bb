// Heads are already normed and rotated.
fn transformed(numbers: vec4<f32>, token: u32, lane: u32, kind: u32) -> vec4<f32> {
    return numbers;
}
