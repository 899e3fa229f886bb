// Four numbers of a cache as matrix units take them.
//#use kv

fn k_halves(at: u32) -> vec4<f16> {
    return halves(k4(at));
}

fn v_halves(at: u32) -> vec4<f16> {
    return halves(v4(at));
}

fn halves(numbers: vec4<f32>) -> vec4<f16> {
    return vec4<f16>(clamp(numbers, vec4(-65504.0), vec4(65504.0)));
}
