// No branch LoRA.
const BRANCH_LORA = false;

fn branch_lora(four: u32) -> vec4<f32> {
    return vec4(0.0);
}

fn branch_lora_two(one: u32, two: u32) -> array<vec4<f32>, 2> {
    return array<vec4<f32>, 2>();
}
