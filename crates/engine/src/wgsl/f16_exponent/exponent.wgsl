enable f16;

// The exponent e for which the largest magnitude of a column, divided by 2^e, is in [2^14, 2^15): nothing overflows, and values of at least
// 2^-28 of the largest keep eleven bits. By the exponent bits of an f32; the clamp keeps both powers of two normal.
fn f16_exponent(most: f32) -> i32 {
    return clamp(i32(bitcast<u32>(most) >> 23u) - 127 - 14, -126, 126);
}

// 2^-e.
fn f16_inverse(exponent: i32) -> f32 {
    return bitcast<f32>(u32(127 - exponent) << 23u);
}
