// Reads four elements of a KV cache, converted to f16 for matrix units.
//#use kv

fn k_f16(at: u32) -> vec4<f16> {
    return to_f16(k4(at));
}

fn v_f16(at: u32) -> vec4<f16> {
    return to_f16(v4(at));
}

fn to_f16(numbers: vec4<f32>) -> vec4<f16> {
    return vec4<f16>(clamp(numbers, vec4(-65504.0), vec4(65504.0)));
}
