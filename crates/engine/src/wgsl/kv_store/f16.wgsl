// Stores four numbers of `row4` as halves, two in a word: no f16 feature is needed.
//#use kv
const KV_RUN: u32 = 4u;

fn halves(x: vec4<f32>) -> vec2<u32> {
    return vec2(pack2x16float(x.xy), pack2x16float(x.zw));
}

fn k_store(at: u32, source: u32) {
    k_cache[at / 4u] = halves(row4(source));
}

fn v_store(at: u32, source: u32) {
    v_cache[at / 4u] = halves(row4(source));
}
