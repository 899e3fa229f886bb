// Four numbers of a cache of halves, as matrix units take them.
enable f16;
alias kv_word = vec4<f16>;

fn k_halves(at: u32) -> vec4<f16> {
    return k_cache[at / 4u];
}

fn v_halves(at: u32) -> vec4<f16> {
    return v_cache[at / 4u];
}

fn halves(numbers: vec4<f32>) -> vec4<f16> {
    return vec4<f16>(clamp(numbers, vec4(-65504.0), vec4(65504.0)));
}
