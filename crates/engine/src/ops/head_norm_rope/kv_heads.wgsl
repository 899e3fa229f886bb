// Heads 0..kv_heads are keys (with norm weight and RoPE), the next kv_heads are values (with neither). Both are stored in the KV caches, in the
// slot of the token's position; tokens that are not live are not stored.
//#use kv_store
@group(0) @binding(2) var<storage, read> k_raw: array<f32>;
@group(0) @binding(3) var<storage, read> v_raw: array<f32>;
@group(0) @binding(4) var<storage, read> k_norm: array<f32>;
@group(0) @binding(5) var<storage, read> rope: array<vec2<f32>>;
@group(0) @binding(6) var<storage, read_write> k_cache: array<kv_word>;
@group(0) @binding(7) var<storage, read_write> v_cache: array<kv_word>;

fn kv_raw(head: u32, token: u32, j: u32) -> f32 {
    let at = head % p.kv_heads * WIDTH + j;
    if head < p.kv_heads {
        return k_raw[p.k_first + token * p.k_stride + at];
    }
    return v_raw[p.v_first + token * p.v_stride + at];
}

fn kv_weight(head: u32, j: u32) -> f32 {
    if head < p.kv_heads && QK_NORM == 1u {
        return k_norm[j];
    }
    return 1.0;
}

fn kv_is_normed(head: u32) -> bool {
    return select(V_NORM, QK_NORM, head < p.kv_heads) == 1u;
}

fn kv_rope_angle(head: u32, token: u32, i: u32) -> vec2<f32> {
    if head < p.kv_heads {
        return rope[token * HALF + i];
    }
    return vec2(1.0, 0.0);
}

fn kv_store(head: u32, token: u32, lane: u32) {
    //#batch let run = row_step(token);
    //#batch enter_row(token);
    if token >= run.count {
        return;
    }
    //#single let slot = (run.position + token) % p.slots;
    //#batch let slot = paged_slot(run.position + token);
    let at = (slot * p.kv_heads + head % p.kv_heads) * WIDTH;
    for (var j = lane * KV_STORE_STEP; j < WIDTH; j += WG * KV_STORE_STEP) {
        if head < p.kv_heads {
            k_store(at + j, j);
        } else {
            v_store(at + j, j);
        }
    }
}
