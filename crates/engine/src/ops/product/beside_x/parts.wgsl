// x is combined where it is needed.
fn beside_x(quad: u32) -> vec4<f32> {
    return combined(quad);
}
