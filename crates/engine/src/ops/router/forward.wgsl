// T = the largest logits[t, :]; ids[t, :] = T, weights[t, j] = softmax(factor * logits[t, T])_j * scale[T_j]
// One workgroup per token. Each lane counts the logits that come before its own: that is its place.
//#use shares

@group(0) @binding(4) var<storage, read_write> ids: array<u32>;
@group(0) @binding(5) var<storage, read_write> weights: array<f32>;

var<workgroup> sh_keys: array<u32, WG>;

// Whole numbers in the order of the logits: NaN first, both zeros equal.
fn key(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    if is_nan(x) {
        return 0u;
    }
    if (bits & 0x7fffffffu) == 0u {
        return 0x80000000u;
    }
    return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) expert: u32) {
    let token = grid_index(group);
    if token >= p.tokens {
        return;
    }
    let logit = logits[token * p.experts + min(expert, p.experts - 1u)];
    let mine = key(logit);
    sh_keys[expert] = mine;
    workgroupBarrier();
    if expert < p.experts {
        var place = 0u;
        for (var other = 0u; other < p.experts; other++) {
            let theirs = sh_keys[other];
            if theirs > mine || (theirs == mine && other < expert) {
                place++;
            }
        }
        if place < p.chosen {
            sh_chosen[place] = expert;
            sh_scaled[place] = scaled(logit);
        }
    }
    workgroupBarrier();
    if expert < p.chosen {
        let id = sh_chosen[expert];
        ids[token * p.chosen + expert] = id;
        weights[token * p.chosen + expert] = power(expert) / power_sum() * scale[id];
    }
}
