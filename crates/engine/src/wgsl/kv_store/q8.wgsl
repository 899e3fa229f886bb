// Stores 32 elements of `row4` as int8 with a common scale; the scales are stored after all bytes of the cache.
//#use kv
const KV_STORE_STEP: u32 = 32u;

fn q8_largest(source: u32) -> f32 {
    var most = vec4(0.0);
    for (var i = 0u; i < 32u; i += 4u) {
        most = max(most, abs(row4(source + i)));
    }
    return max(max(most.x, most.y), max(most.z, most.w));
}

fn q8_word(source: u32, largest: f32) -> u32 {
    let inverse = select(0.0, 127.0 / largest, largest > 0.0);
    let bytes = vec4<u32>(vec4<i32>(round(row4(source) * inverse))) & vec4(255u);
    return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}

fn k_store(at: u32, source: u32) {
    let largest = q8_largest(source);
    for (var i = 0u; i < 32u; i += 4u) {
        k_cache[(at + i) / 4u] = q8_word(source + i, largest);
    }
    k_cache[q8_scale_at(at)] = bitcast<u32>(largest / 127.0);
}

fn v_store(at: u32, source: u32) {
    let largest = q8_largest(source);
    for (var i = 0u; i < 32u; i += 4u) {
        v_cache[(at + i) / 4u] = q8_word(source + i, largest);
    }
    v_cache[q8_scale_at(at)] = bitcast<u32>(largest / 127.0);
}
