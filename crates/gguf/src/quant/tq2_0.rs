//! TQ2_0: `x = d * (q - 1)`, q of 2 bits.
//!
//! Bytes: 64 of bit pairs (32 per 128 elements), d (half).

use super::bits::half;

/// Decodes 256 elements.
pub fn decode(block: &[u8; 66], out: &mut [f32; 256]) {
    let d = half(block, 64);
    for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        for (x, byte) in out.iter_mut().zip(&block[32 * (s / 4)..][..32]) {
            let q = byte >> (2 * (s % 4)) & 3;
            *x = d * (f32::from(q) - 1.0);
        }
    }
}
