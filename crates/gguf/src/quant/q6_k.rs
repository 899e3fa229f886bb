//! Q6_K: `x = d * scale * (q - 32)`, q of 6 bits; a signed scale per 16 elements.
//!
//! Bytes: 128 of low nibbles, 64 of upper bit pairs, 16 scales, d (half).

use super::bits::{extreme, half, inverse, level, put_half};

/// Decodes 256 elements.
pub fn decode(block: &[u8; 210], out: &mut [f32; 256]) {
    let d = half(block, 208);
    for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (n, g) = (s / 4, s % 4);
        let low = &block[64 * n + 32 * (g % 2)..][..32];
        let high = &block[128 + 32 * n..][..32];
        for (l, x) in out.iter_mut().enumerate() {
            let q = low[l] >> (4 * (g / 2)) & 15 | (high[l] >> (2 * g) & 3) << 4;
            let scale = block[192 + 2 * s + l / 16].cast_signed();
            *x = d * f32::from(scale) * (f32::from(q) - 32.0);
        }
    }
}

/// Maps the element of largest magnitude of each sub-block to level 0.
pub fn encode(values: &[f32; 256], block: &mut [u8; 210]) {
    let mut wanted = [0.0; 16];
    for (wanted, values) in wanted.iter_mut().zip(values.as_chunks::<16>().0) {
        *wanted = extreme(values) / -32.0;
    }
    let d = put_half(block, 208, extreme(&wanted) / -128.0);
    let to_scale = inverse(d);
    block[..192].fill(0);
    for (s, wanted) in wanted.into_iter().enumerate() {
        // Scales from -128 to 127, stored as levels from 0 to 255.
        let scale = level(wanted * to_scale + 128.0, 255).wrapping_sub(128).cast_signed();
        block[192 + s] = scale.cast_unsigned();
        let to_level = inverse(d * f32::from(scale));
        for (i, x) in values.iter().enumerate().skip(16 * s).take(16) {
            let q = level(x * to_level + 32.0, 63);
            let (n, g, l) = (i / 128, i % 128 / 32, i % 32);
            block[64 * n + 32 * (g % 2) + l] |= (q & 15) << (4 * (g / 2));
            block[128 + 32 * n + l] |= (q >> 4) << (2 * g);
        }
    }
}
