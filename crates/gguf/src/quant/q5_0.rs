//! Q5_0: `x = d * (q - 16)`, q of 5 bits.
//!
//! Bytes: d (half), fifth bits (u32, bit i for element i), 16 bytes of nibbles as in Q4_0.

use super::bits::{extreme, half, inverse, level, pack_nibbles, put_half};

/// Decodes 32 elements.
pub fn decode(block: &[u8; 22], out: &mut [f32; 32]) {
    let d = half(block, 0);
    let q = levels(&block[2..]);
    for (x, q) in out.iter_mut().zip(q) {
        *x = d * (f32::from(q) - 16.0);
    }
}

/// Maps the element of largest magnitude to level 0.
pub fn encode(values: &[f32; 32], block: &mut [u8; 22]) {
    let d = extreme(values) / -16.0;
    put_half(block, 0, d);
    let inverse = inverse(d);
    let levels = values.map(|x| level((x * inverse + 16.5).floor(), 31));
    pack(&levels, &mut block[2..]);
}

/// Unpacks 32 levels of 5 bits from 20 bytes; also used by Q5_1.
pub(super) fn levels(bytes: &[u8]) -> [u8; 32] {
    let (fifth, nibbles) = bytes.split_first_chunk().expect("20 bytes");
    let fifth = u32::from_le_bytes(*fifth);
    let mut levels = [0; 32];
    let (low, high) = levels.split_at_mut(16);
    for (j, ((low, high), byte)) in low.iter_mut().zip(high).zip(nibbles).enumerate() {
        *low = byte & 15 | ((fifth >> j & 1) as u8) << 4;
        *high = byte >> 4 | ((fifth >> (j + 16) & 1) as u8) << 4;
    }
    levels
}

/// The inverse of [`levels`].
pub(super) fn pack(levels: &[u8; 32], bytes: &mut [u8]) {
    let (high, nibbles) = bytes.split_at_mut(4);
    high.fill(0);
    for (i, level) in levels.iter().enumerate() {
        high[i / 8] |= (level >> 4) << (i % 8);
    }
    pack_nibbles(&levels.map(|level| level & 15), nibbles);
}
