// T = the largest logits[t, :]; ids[t, :] = T, weights[t, j] = softmax(factor * logits[t, T])_j * scale[T_j]
// One workgroup per token, EXPERTS lanes for each share of the counting: how many logits come before an expert's own is its place.
//#use shares

@group(0) @binding(4) var<storage, read_write> ids: array<u32>;
@group(0) @binding(5) var<storage, read_write> weights: array<f32>;

// Lanes of a share, a multiple of four; no fewer than there are experts.
override EXPERTS: u32 = 256u;

var<workgroup> sh_keys: array<u32, EXPERTS>;
var<workgroup> sh_places: array<atomic<u32>, EXPERTS>;
var<workgroup> sh_scales: array<f32, MOST_CHOSEN>;

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
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let token = grid_index(group);
    if token >= p.tokens {
        return;
    }
    let expert = lane % EXPERTS;
    let logit = logits[token * p.experts + min(expert, p.experts - 1u)];
    // Asked for with it: by the time it is known who is chosen, there is nothing left to wait for.
    let own_scale = expert_scale(expert);
    // Lanes beyond the experts come after all of them.
    let mine = select(0u, key(logit), expert < p.experts);
    if lane < EXPERTS {
        sh_keys[expert] = mine;
        atomicStore(&sh_places[expert], 0u);
    }
    workgroupBarrier();
    let count = EXPERTS * EXPERTS / WG;
    let first = lane / EXPERTS * count;
    var before = 0u;
    for (var other = first; other < first + count; other += 4u) {
        before += comes_before(other, mine, expert) + comes_before(other + 1u, mine, expert)
            + comes_before(other + 2u, mine, expert) + comes_before(other + 3u, mine, expert);
    }
    atomicAdd(&sh_places[expert], before);
    workgroupBarrier();
    if lane < p.experts {
        let place = atomicLoad(&sh_places[expert]);
        if place < p.chosen {
            sh_chosen[place] = expert;
            sh_scaled[place] = scaled(logit);
            sh_scales[place] = own_scale;
        }
    }
    workgroupBarrier();
    if lane < p.chosen {
        ids[token * p.chosen + lane] = sh_chosen[lane];
        weights[token * p.chosen + lane] = power(lane) / power_sum() * sh_scales[lane];
    }
}

fn comes_before(other: u32, mine: u32, expert: u32) -> u32 {
    let theirs = sh_keys[other];
    return select(0u, 1u, theirs > mine || (theirs == mine && other < expert));
}
