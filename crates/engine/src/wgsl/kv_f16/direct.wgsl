// Reads four elements of an f16 KV cache, for matrix units.
enable f16;
alias kv_word = vec4<f16>;

fn k_f16(at: u32) -> vec4<f16> {
    return k_cache[at / 4u];
}

fn v_f16(at: u32) -> vec4<f16> {
    return v_cache[at / 4u];
}

fn to_f16(numbers: vec4<f32>) -> vec4<f16> {
    return vec4<f16>(clamp(numbers, vec4(-65504.0), vec4(65504.0)));
}
