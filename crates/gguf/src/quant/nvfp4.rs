//! NVFP4: `x = u(scale) * F[q]`, q a float of 4 bits (E2M1), a float of 8 bits (UE4M3) as scale per 16 elements.
//!
//! Bytes: 4 scales, 32 of nibbles (per 16 elements the first 8 low, the others high).

use super::{
    bits::{extreme, inverse, pack_nibbles},
    iq4_nl::nearest,
    mxfp4::LEVELS,
};

/// Decodes 64 elements.
pub fn decode(block: &[u8; 36], out: &mut [f32; 64]) {
    for (s, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = scale(block[s]);
        let (low, high) = out.split_at_mut(8);
        for ((low, high), byte) in low.iter_mut().zip(high).zip(&block[4 + 8 * s..][..8]) {
            *low = scale * f32::from(LEVELS[usize::from(byte & 15)]);
            *high = scale * f32::from(LEVELS[usize::from(byte >> 4)]);
        }
    }
}

/// Half the value of a UE4M3 byte: `LEVELS` are doubled.
fn scale(byte: u8) -> f32 {
    if byte == 0 || byte == 0x7F {
        return 0.0;
    }
    let (exponent, mantissa) = (byte >> 3 & 15, f32::from(byte & 7));
    match exponent {
        0 => mantissa / 1024.0,
        // (8 + mantissa) * 2^(exponent - 11)
        e => (8.0 + mantissa) * f32::from_bits((u32::from(e) + 127 - 11) << 23),
    }
}

/// Maps the largest magnitude of each sub-block to the largest level, as closely as the scales allow.
pub fn encode(values: &[f32; 64], block: &mut [u8; 36]) {
    for (s, values) in values.as_chunks::<16>().0.iter().enumerate() {
        let wanted = extreme(values).abs() / 12.0;
        let distance = |byte: u8| (wanted - scale(byte)).abs();
        block[s] = (1..0x7F).fold(0, |best, b| if distance(b) < distance(best) { b } else { best });
        let inverse = inverse(scale(block[s]));
        let levels = values.map(|x| nearest(&LEVELS, x * inverse));
        pack_nibbles(&levels, &mut block[4 + 8 * s..][..8]);
    }
}
