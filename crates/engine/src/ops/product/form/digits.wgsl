// x as whole numbers of three digits with base 256: products with bytes are exact, four at a time. The largest number of a piece has
// 23 bits, so that x is rounded as a float would be.
const LARGEST: f32 = 8323072.0;
// A quad is written otherwise than it was made, and that takes the largest number of its piece.
const SCALED = true;

// Sums over the halves of units, what a one stands for, and its inverse.
fn known_of(pair_sums: vec4<f32>, largest: f32) -> vec4<f32> {
    let each = select(0.0, LARGEST / largest, largest > 1e-30);
    return vec4(pair_sums.x + pair_sums.y, pair_sums.z + pair_sums.w, largest / LARGEST, each);
}

// High, middle and low digits in x, y and z.
fn formed(quad: vec4<f32>, known: vec4<f32>) -> vec4<u32> {
    let number = vec4<i32>(round(quad * known.w));
    let low = ((number + vec4(128)) & vec4(255)) - vec4(128);
    let upper = (number - low) >> vec4(8u);
    let middle = ((upper + vec4(128)) & vec4(255)) - vec4(128);
    let high = (upper - middle) >> vec4(8u);
    return vec4(pack4xI8(high), pack4xI8(middle), pack4xI8(low), 0u);
}
