// y[r] += sum over i of B[r, i] * z[i],  z = A x: every workgroup computes z for itself
//#use lora_weight
@group(0) @binding(auto) var<storage, read> lora_first: array<LoraFirst>;
@group(0) @binding(auto) var<storage, read> lora_b: array<LoraVec4>;
alias LoraFirst = LoraVec4;
override RANK: u32 = 16u;

var<workgroup> sh_lora: array<vec4<f32>, WG>;
var<workgroup> sh_z: array<f32, RANK>;

// After the last write to x. Four rows of A are shared by neighbouring lanes.
fn compute_lora_down(lane: Lane) {
    workgroupBarrier();
    let index = lane.part * LANES + lane.in_part;
    let sharing = WG / p.lora_vec4s;
    let four = index / sharing;
    if four < p.lora_vec4s {
        let stride = p.width / 4u;
        let first = four * 4u * stride;
        var sums = vec4(0.0);
        for (var i = index % sharing; i < stride; i += sharing) {
            let x = x_vec4(i);
            let at = first + x_column(i) / 4u;
            sums += vec4(
                dot(lora_vec4(lora_first[at]), x), dot(lora_vec4(lora_first[at + stride]), x),
                dot(lora_vec4(lora_first[at + stride * 2u]), x), dot(lora_vec4(lora_first[at + stride * 3u]), x),
            );
        }
        sh_lora[index] = sums;
    }
    workgroupBarrier();
    for (var row = index; row < p.lora_vec4s * 4u; row += WG) {
        var sum = 0.0;
        for (var i = 0u; i < sharing; i++) {
            sum += sh_lora[row / 4u * sharing + i][row % 4u];
        }
        sh_z[row] = sum;
    }
    workgroupBarrier();
}

fn lora_z(i: u32) -> vec4<f32> {
    return vec4(sh_z[i * 4u], sh_z[i * 4u + 1u], sh_z[i * 4u + 2u], sh_z[i * 4u + 3u]);
}

//#use lora_up
