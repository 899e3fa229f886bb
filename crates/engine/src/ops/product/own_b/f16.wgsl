// Four halves.
//#use own_spot
alias OwnQuad = vec2<u32>;

fn own_quad(words: OwnQuad) -> vec4<f32> {
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
