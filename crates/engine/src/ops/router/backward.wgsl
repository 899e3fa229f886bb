// dlogits[t, T_j] = factor * s_j * (g_j - sum of s_i * g_i), s = softmax over the selected, g_j = scale[T_j] * dw[t, j]; else 0
// One workgroup per token, one lane per expert.
//#use shares

@group(0) @binding(4) var<storage, read> ids: array<u32>;
@group(0) @binding(5) var<storage, read> dw: array<f32>;
@group(0) @binding(6) var<storage, read_write> dlogits: array<f32>;

fn g(token: u32, j: u32) -> f32 {
    return expert_scale(sh_chosen[j]) * dw[token * p.chosen + j];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) expert: u32) {
    let token = grid_index(group);
    if token >= p.tokens {
        return;
    }
    if expert < p.chosen {
        let id = ids[token * p.chosen + expert];
        sh_chosen[expert] = id;
        sh_scaled[expert] = scaled(logits[token * p.experts + min(id, p.experts - 1u)]);
    }
    workgroupBarrier();
    let sum = power_sum();
    var mean = 0.0;
    var rank = p.chosen;
    for (var j = 0u; j < p.chosen; j++) {
        mean += power(j) / sum * g(token, j);
        if sh_chosen[j] == expert {
            rank = j;
        }
    }
    if expert < p.experts {
        var gradient = 0.0;
        if rank < p.chosen {
            gradient = p.factor * power(rank) / sum * (g(token, rank) - mean);
        }
        dlogits[token * p.experts + expert] = gradient;
    }
}
