// Four floats.
alias LowQuad = vec4<f32>;

fn low_quad(quad: LowQuad) -> vec4<f32> {
    return quad;
}
