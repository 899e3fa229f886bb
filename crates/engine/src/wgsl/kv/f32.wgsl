// Reads the four elements from index `at` of an f32 KV cache.
alias kv_word = vec4<f32>;

fn k4(at: u32) -> vec4<f32> {
    return k_cache[at / 4u];
}

fn v4(at: u32) -> vec4<f32> {
    return v_cache[at / 4u];
}
