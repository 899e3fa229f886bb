//! IQ4_XS: `x = d * scale * T[q]`, q of 4 bits into the table of IQ4_NL; a signed scale of 6 bits per 32 elements.
//!
//! Bytes: d (half), upper bit pairs of scales (u16), 4 of lower nibbles of scales, 128 of nibbles (16 per 32 elements).

use super::{
    bits::{extreme, half, inverse, level, put_half},
    iq4_nl,
};

/// Decodes 256 elements.
pub fn decode(block: &[u8; 136], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let high = block[2 + s / 4] >> (2 * (s % 4)) & 3;
        let scale = block[4 + s / 2] >> (4 * (s % 2)) & 15 | high << 4;
        iq4_nl::decode_nibbles(d * (f32::from(scale) - 32.0), &block[8 + 16 * s..][..16], out);
    }
}

/// Maps the element of largest magnitude of each sub-block to the first level.
pub fn encode(values: &[f32; 256], block: &mut [u8; 136]) {
    let mut wanted = [0.0; 8];
    for (wanted, values) in wanted.iter_mut().zip(values.as_chunks::<32>().0) {
        *wanted = extreme(values) / -127.0;
    }
    let d = put_half(block, 0, extreme(&wanted) / -32.0);
    block[2..8].fill(0);
    for (s, values) in values.as_chunks::<32>().0.iter().enumerate() {
        let scale = level(wanted[s] * inverse(d) + 32.0, 63);
        block[2 + s / 4] |= (scale >> 4) << (2 * (s % 4));
        block[4 + s / 2] |= (scale & 15) << (4 * (s % 2));
        let nibbles = &mut block[8 + 16 * s..][..16];
        iq4_nl::encode_nibbles(d * (f32::from(scale) - 32.0), values, nibbles);
    }
}
