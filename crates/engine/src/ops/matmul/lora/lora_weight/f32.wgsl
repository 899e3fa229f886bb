// LoRA matrices in f32.
alias LoraVec4 = vec4<f32>;

fn lora_vec4(four: LoraVec4) -> vec4<f32> {
    return four;
}
