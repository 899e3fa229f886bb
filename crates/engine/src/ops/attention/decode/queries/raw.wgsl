// Raw queries, over caches that hold all keys.
//#use norm_rope
const STORES_KV: bool = false;
@group(0) @binding(2) var<storage, read> k_cache: array<kv_word>;
@group(0) @binding(3) var<storage, read> v_cache: array<kv_word>;

fn raw4(kind: u32, token: u32, head: u32, dim4: u32) -> vec4<f32> {
    return query4(token, head, dim4);
}

fn norm4(kind: u32, dim4: u32) -> vec4<f32> {
    return q_norm[dim4];
}

fn store_new_kv(kv_head: u32, lane: Lane) {
}

fn attend_own_key(token: u32, key: u32, kv_head: u32, lane: Lane) {
}
