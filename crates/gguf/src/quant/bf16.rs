//! BF16: the upper half of an IEEE single.

use half::bf16;

/// Decodes one element.
pub fn decode(block: &[u8; 2], out: &mut [f32; 1]) {
    out[0] = f32::from_bits(u32::from(u16::from_le_bytes(*block)) << 16);
}

/// Encodes one element, rounded to nearest, ties to even.
pub fn encode(values: &[f32; 1], block: &mut [u8; 2]) {
    *block = bf16::from_f32(values[0]).to_le_bytes();
}
