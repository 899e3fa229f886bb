// Stores four numbers of sh_row from `source` on as number `at` and on of a cache.
alias kv_word = vec4<f32>;
const KV_RUN: u32 = 4u;

fn k_store(at: u32, source: u32) {
    k_cache[at / 4u] = row4(source);
}

fn v_store(at: u32, source: u32) {
    v_cache[at / 4u] = row4(source);
}
