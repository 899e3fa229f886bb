// Reads four elements of an f16 KV cache, two per word: the f16 feature is not needed.
alias kv_word = vec2<u32>;

fn unpack_f16(word: vec2<u32>) -> vec4<f32> {
    return vec4(unpack2x16float(word.x), unpack2x16float(word.y));
}

fn k4(at: u32) -> vec4<f32> {
    return unpack_f16(k_cache[at / 4u]);
}

fn v4(at: u32) -> vec4<f32> {
    return unpack_f16(v_cache[at / 4u]);
}
