fn base4(i: u32) -> vec4<f32> {
    return y[i];
}
