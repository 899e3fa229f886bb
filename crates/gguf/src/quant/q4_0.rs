//! Q4_0: `x = d * (q - 8)`, q of 4 bits.
//!
//! Bytes: d (half), 16 bytes of nibbles (first half of the elements low, second half high).

use super::bits::{extreme, half, inverse, level, pack_nibbles, put_half};

/// Decodes 32 elements.
pub fn decode(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half(block, 0);
    let (low, high) = out.split_at_mut(16);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(&block[2..]) {
        *low = d * (f32::from(byte & 15) - 8.0);
        *high = d * (f32::from(byte >> 4) - 8.0);
    }
}

/// Maps the element of largest magnitude to level 0.
pub fn encode(values: &[f32; 32], block: &mut [u8; 18]) {
    let d = extreme(values) / -8.0;
    put_half(block, 0, d);
    let inverse = inverse(d);
    let levels = values.map(|x| level((x * inverse + 8.5).floor(), 15));
    pack_nibbles(&levels, &mut block[2..]);
}
