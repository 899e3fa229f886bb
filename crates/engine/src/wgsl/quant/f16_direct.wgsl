// F16 weights, read as vec4 of f16.
fn weight_group(at: u32) -> vec4<f16> {
    return w[p.plane0 / 2u + at];
}
