// Normed and rotated queries, over caches that hold all keys.
const STORES_KV: bool = false;
@group(0) @binding(2) var<storage, read> k_cache: array<kv_word>;
@group(0) @binding(3) var<storage, read> v_cache: array<kv_word>;
@group(0) @binding(5) var<storage, read> q: array<vec4<f32>>;

fn load_queries(rows: Rows, lane: Lane) {
    for (var i = lane.team * LANES + lane.index; i < ROWS * DIM4; i += WG) {
        sh_q[i] = q[row_place(rows, i / DIM4) * DIM4 + i % DIM4];
    }
}

fn store_new_kv(kv_head: u32, lane: Lane) {
}

fn attend_own_key(token: u32, key: u32, kv_head: u32, lane: Lane) {
}
