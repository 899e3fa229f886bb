//! IQ4_NL: `x = d * T[q]`, q of 4 bits into a table of sixteen levels.
//!
//! Bytes: d (half), 16 bytes of nibbles as in Q4_0.

use super::bits::{extreme, half, inverse, pack_nibbles, put_half};

/// The levels: denser around zero, like weights.
pub const LEVELS: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Decodes 32 elements.
pub fn decode(block: &[u8; 18], out: &mut [f32; 32]) {
    decode_nibbles(half(block, 0), &block[2..], out);
}

/// Decodes 32 elements with scale `d` from 16 bytes; also used by IQ4_XS.
pub(super) fn decode_nibbles(d: f32, nibbles: &[u8], out: &mut [f32; 32]) {
    let (low, high) = out.split_at_mut(16);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(nibbles) {
        *low = d * f32::from(LEVELS[usize::from(byte & 15)]);
        *high = d * f32::from(LEVELS[usize::from(byte >> 4)]);
    }
}

/// Maps the element of largest magnitude to the first level.
pub fn encode(values: &[f32; 32], block: &mut [u8; 18]) {
    let d = put_half(block, 0, extreme(values) / -127.0);
    encode_nibbles(d, values, &mut block[2..]);
}

/// The inverse of [`decode_nibbles`].
pub(super) fn encode_nibbles(d: f32, values: &[f32; 32], nibbles: &mut [u8]) {
    let inverse = inverse(d);
    pack_nibbles(&values.map(|x| nearest(&LEVELS, x * inverse)), nibbles);
}

/// The index of the entry nearest to `x`; the first of several.
pub(super) fn nearest(table: &[i8; 16], x: f32) -> u8 {
    let distance = |i: u8| (x - f32::from(table[usize::from(i)])).abs();
    (1..16).fold(0, |best, i| if distance(i) < distance(best) { i } else { best })
}
