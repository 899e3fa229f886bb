// LoRA matrices in f16.
alias LoraVec4 = vec2<u32>;

fn lora_vec4(words: LoraVec4) -> vec4<f32> {
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
