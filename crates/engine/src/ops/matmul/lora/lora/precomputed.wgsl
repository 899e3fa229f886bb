// y[r] += sum over i of B[r, i] * z[i], where an earlier dispatch computed z
//#use lora_weight
@group(0) @binding(auto) var<storage, read> lora_first: array<LoraFirst>;
@group(0) @binding(auto) var<storage, read> lora_b: array<LoraVec4>;
alias LoraFirst = vec4<f32>;

fn compute_lora_down(lane: Lane) {}

fn lora_z(i: u32) -> vec4<f32> {
    return lora_first[token * p.lora_vec4s + i];
}

//#use lora_up
