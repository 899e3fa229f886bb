//! IQ1_M: `x = d * (2 scale + 1) * (level ± 1/8)`, levels as in IQ1_S; a scale of 3 bits per 16 elements and the sign of
//! the shift per 8.
//!
//! Bytes: 32 of lower bits of entry indices, 16 of nibbles (three upper bits and a sign), 4 words (u16) of four scales and,
//! on top, four bits of d, the lowest first.

use super::{
    bits::half,
    iq1_s::{BOOK, shifted},
};

/// Decodes 256 elements.
pub fn decode(block: &[u8; 56], out: &mut [f32; 256]) {
    let book = &**BOOK;
    let d = half(&scale_bits(block).to_le_bytes(), 0);
    for (g, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let nibble = block[32 + g / 2] >> (4 * (g % 2)) & 15;
        let entry = &book[usize::from(block[g]) | usize::from(nibble & 7) << 8];
        let s = g / 2;
        let scale = word(block, s / 4) >> (3 * (s % 4)) & 7;
        shifted(d * f32::from(2 * scale + 1), entry, nibble & 8 != 0, out);
    }
}

/// The bits of the f16 d, spread over the block.
pub(super) fn scale_bits(block: &[u8; 56]) -> u16 {
    (0..4).fold(0, |d, i| d | word(block, i) >> 12 << (4 * i))
}

fn word(block: &[u8; 56], i: usize) -> u16 {
    u16::from_le_bytes([block[48 + 2 * i], block[49 + 2 * i]])
}
