// Four floats.
//#use own_spot
alias OwnQuad = vec4<f32>;

fn own_quad(quad: OwnQuad) -> vec4<f32> {
    return quad;
}
