//! Q2_K: `x = d * scale * q - dmin * minimum`, q of 2 bits; scale and minimum of 4 bits per 16 elements.
//!
//! Bytes: 16 of scales (low) and minima (high), 64 of bit pairs, d (half), dmin (half).

use super::bits::{affine, half, inverse, level, put_half};

/// Decodes 256 elements.
pub fn decode(block: &[u8; 84], out: &mut [f32; 256]) {
    let (d, dmin) = (half(block, 80), half(block, 82));
    for (s, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = d * f32::from(block[s] & 15);
        let minimum = dmin * f32::from(block[s] >> 4);
        let pairs = &block[16 + 32 * (s / 8) + 16 * (s % 2)..][..16];
        for (x, byte) in out.iter_mut().zip(pairs) {
            let q = byte >> (2 * (s % 8 / 2)) & 3;
            *x = scale * f32::from(q) - minimum;
        }
    }
}

/// Maps the smallest and largest element of each sub-block to levels 0 and 3.
pub fn encode(values: &[f32; 256], block: &mut [u8; 84]) {
    let mut wanted = [(0.0, 0.0); 16];
    for (wanted, values) in wanted.iter_mut().zip(values.as_chunks::<16>().0) {
        *wanted = affine(values, 3.0);
    }
    let most = |part: fn(&(f32, f32)) -> f32| wanted.iter().map(part).fold(0.0, f32::max);
    let d = put_half(block, 80, most(|w| w.0) / 15.0);
    let dmin = put_half(block, 82, most(|w| w.1) / 15.0);
    block[16..80].fill(0);
    for (s, (scale, minimum)) in wanted.into_iter().enumerate() {
        let scale = level(scale * inverse(d), 15);
        let minimum = level(minimum * inverse(dmin), 15);
        block[s] = scale | minimum << 4;
        let to_level = inverse(d * f32::from(scale));
        for (i, x) in values.iter().enumerate().skip(16 * s).take(16) {
            let q = level((x + dmin * f32::from(minimum)) * to_level, 3);
            block[16 + 32 * (i / 128) + i % 32] |= q << (2 * (i % 128 / 32));
        }
    }
}
