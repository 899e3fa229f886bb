// Stages weights of any format in workgroup memory as f16, converted from f32.
//#use stage_units
alias LoadedWeights = array<vec4<f32>, 8>;

fn load_packed_unit(unit: u32) -> LoadedWeights {
    return load_unit(unit);
}

fn stage_unit(weights: LoadedWeights, at: u32) {
    sh_w[at] = vec4<f16>(weights[0]);
    sh_w[at + 1u] = vec4<f16>(weights[1]);
    sh_w[at + 2u] = vec4<f16>(weights[2]);
    sh_w[at + 3u] = vec4<f16>(weights[3]);
    sh_w[at + 4u] = vec4<f16>(weights[4]);
    sh_w[at + 5u] = vec4<f16>(weights[5]);
    sh_w[at + 6u] = vec4<f16>(weights[6]);
    sh_w[at + 7u] = vec4<f16>(weights[7]);
}
