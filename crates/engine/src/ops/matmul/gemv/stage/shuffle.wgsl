// Neighbouring lanes of a subgroup hold the vec4s of a piece, two each: the statistics of a piece are computed by shuffles, and vec4s are
// stored once, in the form of the dot products.
//#use quantise

// Stages vec4s i and i + 1. All lanes call it in the same turn, also past the last vec4: shuffles need all lanes.
fn stage_two(i: u32, one: vec4<f32>, two: vec4<f32>) {
    // Sums over pairs of vec4s; if pieces have two units, over those of both.
    var pair = dot(one, vec4(1.0)) + dot(two, vec4(1.0));
    if GROUPS > 8u {
        pair += subgroupShuffleXor(pair, 4u);
    }
    let pairs = vec2(pair, subgroupShuffleXor(pair, 1u));
    // In order for the first lane of a piece, which writes them.
    let pair_sums = vec4(pairs, subgroupShuffleXor(pairs, 2u));
    var largest = 0.0;
    if QUANTISED {
        let sizes = max(abs(one), abs(two));
        largest = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
        largest = max(largest, subgroupShuffleXor(largest, 1u));
        largest = max(largest, subgroupShuffleXor(largest, 2u));
        if GROUPS > 8u {
            largest = max(largest, subgroupShuffleXor(largest, 4u));
        }
    }
    let stats = stats_of(pair_sums, largest);
    if i < X_VEC4S {
        set_quantised(i, one, two, stats);
        if i % GROUPS == 0u {
            sh_pieces[i / GROUPS] = stats;
        }
    }
}

// Called after the last vec4.
fn stage_end(lane: Lane) {
    workgroupBarrier();
}
