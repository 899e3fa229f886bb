// BF16, the upper half of an F32.
fn decode4(words: vec2<u32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(vec4(words.x << 16u, words.x & 0xffff0000u, words.y << 16u, words.y & 0xffff0000u));
}
