// y[r] += sum over i of B[r, i] * z[i],  z = m * (P h + n * Q u): Q u and P h are stored after the branch, m and n come from the norms
//#use lora_weight
@group(0) @binding(auto) var<storage, read> lora_b: array<LoraVec4>;
override RANK: u32 = 16u;
override FOLDED_AT: u32 = 1536u;
// Folded rows of all linear layers.
override FOLDED_ROWS: u32 = 16u;

var<workgroup> sh_z: array<f32, RANK>;

fn compute_lora_down(lane: Lane) {}

fn lora_z(i: u32) -> vec4<f32> {
    return vec4(sh_z[i * 4u], sh_z[i * 4u + 1u], sh_z[i * 4u + 2u], sh_z[i * 4u + 3u]);
}

//#use lora_up
