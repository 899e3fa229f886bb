//! Q5_1: `x = d * q + m`, q of 5 bits.
//!
//! Bytes: d (half), m (half), fifth bits and nibbles as in Q5_0.

use super::{
    bits::{bounds, half, inverse, level, put_half},
    q5_0,
};

/// Decodes 32 elements.
pub fn decode(block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (half(block, 0), half(block, 2));
    let q = q5_0::levels(&block[4..]);
    for (x, q) in out.iter_mut().zip(q) {
        *x = d * f32::from(q) + m;
    }
}

/// Maps the smallest element to level 0, the largest to level 31.
pub fn encode(values: &[f32; 32], block: &mut [u8; 24]) {
    let (low, high) = bounds(values);
    let d = (high - low) / 31.0;
    put_half(block, 0, d);
    put_half(block, 2, low);
    let inverse = inverse(d);
    let levels = values.map(|x| level(((x - low) * inverse + 0.5).floor(), 31));
    q5_0::pack(&levels, &mut block[4..]);
}
