// x as whole numbers of two digits with base 256: products with bytes are exact, four at a time. The largest number of a piece has
// 15 bits.
const LARGEST: f32 = 32639.0;
// Quads are written otherwise than they were made, and that takes the largest number of their piece.
const SCALED = true;

// Sums over the halves of units, what a one stands for, and its inverse.
fn known_of(pair_sums: vec4<f32>, largest: f32) -> vec4<f32> {
    let each = select(0.0, LARGEST / largest, largest > 1e-30);
    return vec4(pair_sums.x + pair_sums.y, pair_sums.z + pair_sums.w, largest * (1.0 / LARGEST), each);
}

// High and low digits. In the sum with 1.5 * 2^23 the last bits of a float are a whole number, rounded; 0x8080 more makes both digits
// bytes without a sign, as long as they are cut.
fn formed(quad: vec4<f32>, known: vec4<f32>) -> vec2<u32> {
    let bits = bitcast<vec4<u32>>(quad * known.w + vec4(12615808.0));
    let high = bits & vec4(0xff00u);
    let low = bits & vec4(0xffu);
    let bytes = vec2(
        (high.x >> 8u) | high.y | (high.z << 8u) | (high.w << 16u),
        low.x | (low.y << 8u) | (low.z << 16u) | (low.w << 24u),
    );
    return bytes ^ vec2(0x80808080u);
}
