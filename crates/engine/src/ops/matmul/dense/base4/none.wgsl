fn base4(i: u32) -> vec4<f32> {
    return vec4(0.0);
}
