//! Q3_K: `x = d * scale * (q - 4)`, q of 3 bits; a signed scale of 6 bits per 16 elements.
//!
//! Bytes: 32 of third bits (bit s of byte l for element 32 s + l), 64 of lower bit pairs, 12 of scales, d (half).

use super::bits::{extreme, half, inverse, level, put_half};

/// Decodes 256 elements.
pub fn decode(block: &[u8; 110], out: &mut [f32; 256]) {
    let d = half(block, 108);
    for (s, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = d * (f32::from(scale_level(&block[96..108], s)) - 32.0);
        let column = 16 * (s % 2);
        let pairs = &block[32 + 32 * (s / 8) + column..][..16];
        let third = &block[column..][..16];
        for ((x, pair), third) in out.iter_mut().zip(pairs).zip(third) {
            let q = pair >> (2 * (s % 8 / 2)) & 3 | (third >> (s / 2) & 1) << 2;
            *x = scale * (f32::from(q) - 4.0);
        }
    }
}

/// The scale of sub-block `s` plus 32.
fn scale_level(packed: &[u8], s: usize) -> u8 {
    packed[s % 8] >> (4 * (s / 8)) & 15 | (packed[8 + s % 4] >> (2 * (s / 4)) & 3) << 4
}

/// Maps the element of largest magnitude of each sub-block to level 0.
pub fn encode(values: &[f32; 256], block: &mut [u8; 110]) {
    let mut wanted = [0.0; 16];
    for (wanted, values) in wanted.iter_mut().zip(values.as_chunks::<16>().0) {
        *wanted = extreme(values) / -4.0;
    }
    let d = put_half(block, 108, extreme(&wanted) / -32.0);
    block[..108].fill(0);
    for (s, wanted) in wanted.into_iter().enumerate() {
        let scale = level(wanted * inverse(d) + 32.0, 63);
        block[96 + s % 8] |= (scale & 15) << (4 * (s / 8));
        block[104 + s % 4] |= (scale >> 4) << (2 * (s / 4));
        let to_level = inverse(d * (f32::from(scale) - 32.0));
        for (i, x) in values.iter().enumerate().skip(16 * s).take(16) {
            let q = level(x * to_level + 4.0, 7);
            block[32 + 32 * (i / 128) + i % 32] |= (q & 3) << (2 * (i % 128 / 32));
            block[i % 32] |= (q >> 2) << (i / 32);
        }
    }
}
