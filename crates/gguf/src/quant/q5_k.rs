//! Q5_K: `x = d * scale * q - dmin * minimum`, q of 5 bits; scale and minimum per 32 elements.
//!
//! Bytes: d (half), dmin (half), 12 of scales, 32 of fifth bits (bit s of byte l for element 32 s + l),
//! 128 of nibbles as in Q4_K.

use super::{
    bits::{half, pack_nibbles},
    scales,
};

/// Decodes 256 elements.
pub fn decode(block: &[u8; 176], out: &mut [f32; 256]) {
    let (d, dmin) = (half(block, 0), half(block, 2));
    let fifth = &block[16..48];
    for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (scale, minimum) = scales::unpack(&block[4..16], s);
        let (scale, minimum) = (d * f32::from(scale), dmin * f32::from(minimum));
        let nibbles = &block[48 + 32 * (s / 2)..][..32];
        for ((x, byte), fifth) in out.iter_mut().zip(nibbles).zip(fifth) {
            let q = byte >> (4 * (s % 2)) & 15 | (fifth >> s & 1) << 4;
            *x = scale * f32::from(q) - minimum;
        }
    }
}

/// Maps the smallest and largest element of each sub-block to levels 0 and 31.
pub fn encode(values: &[f32; 256], block: &mut [u8; 176]) {
    let levels = scales::encode(values, 31, block);
    block[16..48].fill(0);
    for (i, level) in levels.iter().enumerate() {
        block[16 + i % 32] |= (level >> 4) << (i / 32);
    }
    let low = levels.map(|level| level & 15);
    for (levels, bytes) in low.as_chunks::<64>().0.iter().zip(block[48..].as_chunks_mut::<32>().0) {
        pack_nibbles(levels, bytes);
    }
}
