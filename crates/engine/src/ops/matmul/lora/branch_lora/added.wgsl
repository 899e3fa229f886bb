// Adds the LoRA up-projection B z to the branch, where z is stored after a. B is transposed, so that neighbouring lanes read neighbouring
// elements. Callers issue their other loads first: each iteration here waits for memory.
//#use lora_weight
@group(0) @binding(auto) var<storage, read> branch_b: array<LoraVec4>;
const BRANCH_LORA = true;
// The rank, a multiple of four.
override BRANCH_RANK: u32 = 16u;

fn branch_lora(four: u32) -> vec4<f32> {
    var sum = vec4(0.0);
    for (var i = 0u; i < BRANCH_RANK; i += 4u) {
        sum += branch_lora_step(four, i);
    }
    return sum;
}

fn branch_lora_two(one: u32, two: u32) -> array<vec4<f32>, 2> {
    var sums = array<vec4<f32>, 2>();
    for (var i = 0u; i < BRANCH_RANK; i += 4u) {
        sums[0] += branch_lora_step(one, i);
        sums[1] += branch_lora_step(two, i);
    }
    return sums;
}

fn branch_lora_step(four: u32, i: u32) -> vec4<f32> {
    let z = a[(p.width + i) / 4u];
    let at = i * p.branch_stride + four;
    return z.x * lora_vec4(branch_b[at]) + z.y * lora_vec4(branch_b[at + p.branch_stride])
        + z.z * lora_vec4(branch_b[at + p.branch_stride * 2u]) + z.w * lora_vec4(branch_b[at + p.branch_stride * 3u]);
}
