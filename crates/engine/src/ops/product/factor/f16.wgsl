// Four halves.
alias LowQuad = vec2<u32>;

fn low_quad(words: LowQuad) -> vec4<f32> {
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
