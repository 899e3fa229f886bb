//! The twelve bytes of Q4_K and Q5_K with eight scales and eight minima of 6 bits each.

use super::bits::{affine, inverse, level, put_half};

/// Scale and minimum of sub-block `s`.
pub(crate) fn unpack(packed: &[u8], s: usize) -> (u8, u8) {
    if s < 4 {
        (packed[s] & 63, packed[s + 4] & 63)
    } else {
        let low = packed[s + 4];
        (low & 15 | packed[s - 4] >> 6 << 4, low >> 4 | packed[s] >> 6 << 4)
    }
}

/// The inverse of [`unpack`] for all eight sub-blocks.
fn pack(scales: &[(u8, u8); 8], packed: &mut [u8]) {
    for s in 0..4 {
        let (scale, minimum) = scales[s];
        let (high_scale, high_minimum) = scales[s + 4];
        packed[s] = scale | high_scale >> 4 << 6;
        packed[s + 4] = minimum | high_minimum >> 4 << 6;
        packed[s + 8] = high_scale & 15 | high_minimum << 4;
    }
}

/// Chooses and stores scales (the first 16 bytes of a block); returns the level of every element.
pub(crate) fn encode(values: &[f32; 256], max: u8, block: &mut [u8]) -> [u8; 256] {
    let mut wanted = [(0.0, 0.0); 8];
    for (wanted, values) in wanted.iter_mut().zip(values.as_chunks::<32>().0) {
        *wanted = affine(values, max.into());
    }
    let most = |part: fn(&(f32, f32)) -> f32| wanted.iter().map(part).fold(0.0, f32::max);
    let d = put_half(block, 0, most(|w| w.0) / 63.0);
    let dmin = put_half(block, 2, most(|w| w.1) / 63.0);
    let (to_scale, to_minimum) = (inverse(d), inverse(dmin));
    let scales = wanted.map(|(s, m)| (level(s * to_scale, 63), level(m * to_minimum, 63)));
    pack(&scales, &mut block[4..16]);

    let mut levels = [0; 256];
    for (i, (q, x)) in levels.iter_mut().zip(values).enumerate() {
        let (scale, minimum) = scales[i / 32];
        *q = level((x + dmin * f32::from(minimum)) * inverse(d * f32::from(scale)), max);
    }
    levels
}
