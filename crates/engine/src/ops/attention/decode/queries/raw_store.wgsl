// Raw queries, keys and values: new keys and values are first stored in the KV caches.
//#use norm_rope
//#use kv_store
const STORES_KV: bool = true;
@group(0) @binding(2) var<storage, read_write> k_cache: array<kv_word>;
@group(0) @binding(3) var<storage, read_write> v_cache: array<kv_word>;
@group(0) @binding(8) var<storage, read> k_raw: array<vec4<f32>>;
@group(0) @binding(9) var<storage, read> v_raw: array<vec4<f32>>;
@group(0) @binding(10) var<storage, read> k_norm: array<vec4<f32>>;

fn raw4(kind: u32, token: u32, head: u32, dim4: u32) -> vec4<f32> {
    if kind == QUERY {
        return query4(token, head, dim4);
    }
    if kind == KEY {
        return k_raw[p.k_first + token * p.k_stride + head * DIM4 + dim4];
    }
    return v_raw[p.v_first + token * p.v_stride + head * DIM4 + dim4];
}

fn norm4(kind: u32, dim4: u32) -> vec4<f32> {
    if kind == QUERY {
        return q_norm[dim4];
    }
    if kind == KEY {
        return k_norm[dim4];
    }
    return vec4(1.0);
}

// The source that kv_store reads.
fn row4(at: u32) -> vec4<f32> {
    return sh_q[at / 4u];
}

// Norms, rotates and stores the keys and values of the live tokens, one per team at a time, in the workgroup memory of the queries.
fn store_new_kv(kv_head: u32, lane: Lane) {
    let staged = min(STAGED, TEAMS);
    let all = 2u * min(run.count, p.tokens);
    for (var i = 0u; i < all; i += staged) {
        let number = min(i + lane.team, all - 1u);
        let mine = lane.team < staged && i + lane.team < all;
        let kind = select(KEY, VALUE, number % 2u == 1u);
        let token = number / 2u;
        norm_rope(kind, token, kv_head, select(STAGED, lane.team, mine), lane);
        workgroupBarrier();
        if mine {
            //#batch let run = row_step(token);
            //#batch enter_row(token);
            let at = cache_at(run.position + token, kv_head);
            for (var j = lane.index * KV_STORE_STEP; j < WIDTH; j += LANES * KV_STORE_STEP) {
                if kind == KEY {
                    k_store(at + j, lane.team * WIDTH + j);
                } else {
                    v_store(at + j, lane.team * WIDTH + j);
                }
            }
        }
        workgroupBarrier();
    }
    // They are read back from the caches, rounded like in later passes.
    storageBarrier();
}

// A token that sees only its own key: the key's weight is 1 and the weighted sum is its value. Only scores are computed, one head per team.
fn attend_own_key(token: u32, key: u32, kv_head: u32, lane: Lane) {
    let at = cache_at(key, kv_head);
    let staged = min(STAGED, TEAMS);
    for (var first = 0u; first < heads_of_group(); first += staged) {
        let mine = lane.team < staged && first + lane.team < heads_of_group();
        let head = kv_head * heads_of_group() + min(first + lane.team, heads_of_group() - 1u);
        norm_rope(QUERY, token, head, select(STAGED, lane.team, mine), lane);
        workgroupBarrier();
        var sum = 0.0;
        for (var dim4 = lane.index; dim4 < DIM4; dim4 += LANES) {
            sum += dot(sh_q[min(lane.team, staged - 1u) * DIM4 + dim4], k4(at + dim4 * 4u));
        }
        let score = team_sum(sum, lane);
        if mine {
            let place = (token * HEADS + head) * SPLITS;
            for (var dim4 = lane.index; dim4 < DIM4; dim4 += LANES) {
                o[place * DIM4 + dim4] = v4(at + dim4 * 4u);
            }
            if lane.index == 0u {
                o[p.tokens * HEADS * SPLITS * DIM4 + place] = vec4(score, 1.0, 0.0, 0.0);
            }
        }
        // The next heads reuse this memory.
        workgroupBarrier();
    }
}
