//! Q4_K: `x = d * scale * q - dmin * minimum`, q of 4 bits; scale and minimum per 32 elements.
//!
//! Bytes: d (half), dmin (half), 12 of scales, 128 of nibbles (per 64 elements the first 32 low, the others high).

use super::{
    bits::{half, pack_nibbles},
    scales,
};

/// Decodes 256 elements.
pub fn decode(block: &[u8; 144], out: &mut [f32; 256]) {
    let (d, dmin) = (half(block, 0), half(block, 2));
    for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (scale, minimum) = scales::unpack(&block[4..16], s);
        let (scale, minimum) = (d * f32::from(scale), dmin * f32::from(minimum));
        let nibbles = &block[16 + 32 * (s / 2)..][..32];
        for (x, byte) in out.iter_mut().zip(nibbles) {
            let q = byte >> (4 * (s % 2)) & 15;
            *x = scale * f32::from(q) - minimum;
        }
    }
}

/// Maps the smallest and largest element of each sub-block to levels 0 and 15.
pub fn encode(values: &[f32; 256], block: &mut [u8; 144]) {
    let levels = scales::encode(values, 15, block);
    for (levels, bytes) in
        levels.as_chunks::<64>().0.iter().zip(block[16..].as_chunks_mut::<32>().0)
    {
        pack_nibbles(levels, bytes);
    }
}
