// Stores four elements of `row4` as f16, two per word: the f16 feature is not needed.
//#use kv
const KV_STORE_STEP: u32 = 4u;

fn pack_f16(x: vec4<f32>) -> vec2<u32> {
    return vec2(pack2x16float(x.xy), pack2x16float(x.zw));
}

fn k_store(at: u32, source: u32) {
    k_cache[at / 4u] = pack_f16(row4(source));
}

fn v_store(at: u32, source: u32) {
    v_cache[at / 4u] = pack_f16(row4(source));
}
