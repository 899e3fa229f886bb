//! IQ1_S: `x = d * (2 scale + 1) * (level ± 1/8)`, levels -1, 0 and 1 from a code book of eight at a time;
//! a scale of 3 bits and the sign of the shift per 32 elements.
//!
//! Bytes: d (half), 32 of lower bits of entry indices, 8 words (u16) of four times three upper bits, a scale and a sign.

use super::{
    bits::half,
    code_book::{Expanded, IQ1},
};

/// The code book of both IQ1 formats.
pub(super) static BOOK: Expanded<8> = Expanded::new(|| IQ1.expand());

/// Decodes 256 elements.
pub fn decode(block: &[u8; 50], out: &mut [f32; 256]) {
    let (book, d) = (&**BOOK, half(block, 0));
    let words = block[34..].as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
    for ((s, word), out) in words.enumerate().zip(out.as_chunks_mut::<32>().0) {
        let scale = d * f32::from(2 * (word >> 12 & 7) + 1);
        for (l, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let high = usize::from(word >> (3 * l) & 7);
            let entry = &book[usize::from(block[2 + 4 * s + l]) | high << 8];
            shifted(scale, entry, word >> 15 == 1, out);
        }
    }
}

/// Levels, shifted by an eighth up or down, times `scale`.
pub(super) fn shifted(scale: f32, entry: &[i8; 8], down: bool, out: &mut [f32; 8]) {
    let shift = if down { -0.125 } else { 0.125 };
    for (x, &level) in out.iter_mut().zip(entry) {
        *x = scale * (f32::from(level) + shift);
    }
}
