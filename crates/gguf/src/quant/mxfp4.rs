//! MXFP4: `x = 2^(e - 128) * F[q]`, q a float of 4 bits (E2M1).
//!
//! Bytes: e, 16 bytes of nibbles as in Q4_0.

use super::{
    bits::{extreme, level, pack_nibbles},
    iq4_nl::nearest,
};

/// The values of E2M1, doubled to be integers.
pub const LEVELS: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Decodes 32 elements.
pub fn decode(block: &[u8; 17], out: &mut [f32; 32]) {
    let scale = scale(block[0]);
    let (low, high) = out.split_at_mut(16);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(&block[1..]) {
        *low = scale * f32::from(LEVELS[usize::from(byte & 15)]);
        *high = scale * f32::from(LEVELS[usize::from(byte >> 4)]);
    }
}

/// 2^(e - 128), whose first two values are subnormal.
fn scale(e: u8) -> f32 {
    f32::from_bits(match e {
        0 => 1 << 21,
        1 => 1 << 22,
        e => u32::from(e - 1) << 23,
    })
}

/// Aligns the binade of the largest magnitude with that of the largest level.
pub fn encode(values: &[f32; 32], block: &mut [u8; 17]) {
    let most = extreme(values).abs();
    // 2^(e - 128) * 8 is the power of two below `most`: the levels' upper binade is 8 to 12.
    block[0] = if most == 0.0 { 0 } else { level(most.log2().floor() + 125.0, 254) };
    // Not a multiplication by the inverse: that of the smallest scale is infinite.
    let scale = scale(block[0]);
    pack_nibbles(&values.map(|x| nearest(&LEVELS, x / scale)), &mut block[1..]);
}
