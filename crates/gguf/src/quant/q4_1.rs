//! Q4_1: `x = d * q + m`, q of 4 bits.
//!
//! Bytes: d (half), m (half), 16 bytes of nibbles (first half of the elements low, second half high).

use super::bits::{bounds, half, inverse, level, pack_nibbles, put_half};

/// Decodes 32 elements.
pub fn decode(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (half(block, 0), half(block, 2));
    let (low, high) = out.split_at_mut(16);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(&block[4..]) {
        *low = d * f32::from(byte & 15) + m;
        *high = d * f32::from(byte >> 4) + m;
    }
}

/// Maps the smallest element to level 0, the largest to level 15.
pub fn encode(values: &[f32; 32], block: &mut [u8; 20]) {
    let (low, high) = bounds(values);
    let d = (high - low) / 15.0;
    put_half(block, 0, d);
    put_half(block, 2, low);
    let inverse = inverse(d);
    let levels = values.map(|x| level(((x - low) * inverse + 0.5).floor(), 15));
    pack_nibbles(&levels, &mut block[4..]);
}
