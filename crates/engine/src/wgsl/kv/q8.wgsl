// Reads four elements of an int8 KV cache; 32 elements share a scale, and the scales are stored after all bytes.
alias kv_word = u32;

fn signed4(word: u32) -> vec4<f32> {
    return vec4<f32>(vec4<i32>(vec4(word) << vec4(24u, 16u, 8u, 0u)) >> vec4(24u));
}

fn q8_scale_at(at: u32) -> u32 {
    return p.slots * p.kv_heads * WIDTH / 4u + at / 32u;
}

fn k4(at: u32) -> vec4<f32> {
    return signed4(k_cache[at / 4u]) * bitcast<f32>(k_cache[q8_scale_at(at)]);
}

fn v4(at: u32) -> vec4<f32> {
    return signed4(v_cache[at / 4u]) * bitcast<f32>(v_cache[q8_scale_at(at)]);
}
