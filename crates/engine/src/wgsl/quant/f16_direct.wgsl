// F16 weights as they are, four neighbours at a time.
fn weight_group(at: u32) -> vec4<f16> {
    return w[p.plane0 / 2u + at];
}
