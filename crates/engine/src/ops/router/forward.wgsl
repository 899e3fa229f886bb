// T = the largest logits[t, :]; ids[t, :] = T, weights[t, j] = softmax(factor * logits[t, T])_j * scale[T_j]
// One workgroup per token, with one group of EXPERTS lanes per share of the comparisons: the rank of an expert is the number of logits before it.
//#use shares

@group(0) @binding(4) var<storage, read_write> ids: array<u32>;
@group(0) @binding(5) var<storage, read_write> weights: array<f32>;

// Lanes of a group, a multiple of four and at least the number of experts.
override EXPERTS: u32 = 256u;

var<workgroup> sh_keys: array<u32, EXPERTS>;
var<workgroup> sh_ranks: array<atomic<u32>, EXPERTS>;
var<workgroup> sh_scales: array<f32, MAX_CHOSEN>;

// Integers in the order of the logits: NaN first, both zeros equal.
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
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let token = grid_index(group);
    if token >= p.tokens {
        return;
    }
    let expert = lane % EXPERTS;
    let logit = logits[token * p.experts + min(expert, p.experts - 1u)];
    // Loaded together with the logit, so that nothing is waited for after the selection.
    let own_scale = expert_scale(expert);
    // Lanes beyond the experts rank after all of them.
    let own = select(0u, key(logit), expert < p.experts);
    if lane < EXPERTS {
        sh_keys[expert] = own;
        atomicStore(&sh_ranks[expert], 0u);
    }
    workgroupBarrier();
    let count = EXPERTS * EXPERTS / WG;
    let first = lane / EXPERTS * count;
    var before = 0u;
    for (var other = first; other < first + count; other += 4u) {
        before += comes_before(other, own, expert) + comes_before(other + 1u, own, expert)
            + comes_before(other + 2u, own, expert) + comes_before(other + 3u, own, expert);
    }
    atomicAdd(&sh_ranks[expert], before);
    workgroupBarrier();
    if lane < p.experts {
        let rank = atomicLoad(&sh_ranks[expert]);
        if rank < p.chosen {
            sh_chosen[rank] = expert;
            sh_scaled[rank] = scaled(logit);
            sh_scales[rank] = own_scale;
        }
    }
    workgroupBarrier();
    if lane < p.chosen {
        ids[token * p.chosen + lane] = sh_chosen[lane];
        weights[token * p.chosen + lane] = power(lane) / power_sum() * sh_scales[lane];
    }
}

fn comes_before(other: u32, own: u32, expert: u32) -> u32 {
    let other_key = sh_keys[other];
    return select(0u, 1u, other_key > own || (other_key == own && other < expert));
}
