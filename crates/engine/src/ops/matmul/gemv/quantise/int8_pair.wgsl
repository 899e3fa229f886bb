// x as 16-bit integers, split into an int8 hi/lo pair: dot products with int8 are exact, four at a time. The largest magnitude of a piece
// is scaled to LARGEST.
const LARGEST: f32 = 32639.0;
// Quantising needs the largest magnitude of a piece.
const QUANTISED = true;

// Sums over the halves of units, the scale, and its inverse.
fn stats_of(pair_sums: vec4<f32>, largest: f32) -> vec4<f32> {
    let inverse = select(0.0, LARGEST / largest, largest > 1e-30);
    return vec4(pair_sums.x + pair_sums.y, pair_sums.z + pair_sums.w, largest * (1.0 / LARGEST), inverse);
}

// High and low bytes. Adding 1.5 * 2^23 leaves the rounded integer in the last bits of the float; a bias of 0x8080 keeps both bytes
// unsigned until it is removed at the end.
fn quantised(four: vec4<f32>, stats: vec4<f32>) -> vec2<u32> {
    let bits = bitcast<vec4<u32>>(four * stats.w + vec4(12615808.0));
    let high = bits & vec4(0xff00u);
    let low = bits & vec4(0xffu);
    let bytes = vec2(
        (high.x >> 8u) | high.y | (high.z << 8u) | (high.w << 16u),
        low.x | (low.y << 8u) | (low.z << 16u) | (low.w << 24u),
    );
    return bytes ^ vec2(0x80808080u);
}
