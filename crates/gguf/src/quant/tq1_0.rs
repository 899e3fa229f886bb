//! TQ1_0: `x = d * (t - 1)`, t a ternary digit; a byte holds five digits as a fraction of 256.
//!
//! Bytes: 48 with five digits, 4 with four digits, d (half).

use super::bits::half;

/// Decodes 256 elements.
pub fn decode(block: &[u8; 54], out: &mut [f32; 256]) {
    let d = half(block, 52);
    let (first, rest) = out.split_at_mut(160);
    let (second, third) = rest.split_at_mut(80);
    digits(d, &block[..32], first);
    digits(d, &block[32..48], second);
    digits(d, &block[48..52], third);
}

/// The first digits of all bytes, then their second digits, and so on.
fn digits(d: f32, bytes: &[u8], out: &mut [f32]) {
    let mut power = 1u8;
    for out in out.chunks_exact_mut(bytes.len()) {
        for (x, byte) in out.iter_mut().zip(bytes) {
            let digit = (u16::from(byte.wrapping_mul(power)) * 3) >> 8;
            *x = d * (f32::from(digit) - 1.0);
        }
        power = power.wrapping_mul(3);
    }
}
