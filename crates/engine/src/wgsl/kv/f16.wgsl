// Four numbers of a cache of halves, two in a word: no f16 feature is needed.
alias kv_word = vec2<u32>;

fn halves4(word: vec2<u32>) -> vec4<f32> {
    return vec4(unpack2x16float(word.x), unpack2x16float(word.y));
}

fn k4(at: u32) -> vec4<f32> {
    return halves4(k_cache[at / 4u]);
}

fn v4(at: u32) -> vec4<f32> {
    return halves4(v_cache[at / 4u]);
}
