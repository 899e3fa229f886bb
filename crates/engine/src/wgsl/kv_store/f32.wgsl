// Stores the four elements of `row4` at `source` at index `at` of an f32 KV cache.
//#use kv
const KV_STORE_STEP: u32 = 4u;

fn k_store(at: u32, source: u32) {
    k_cache[at / 4u] = row4(source);
}

fn v_store(at: u32, source: u32) {
    v_cache[at / 4u] = row4(source);
}
