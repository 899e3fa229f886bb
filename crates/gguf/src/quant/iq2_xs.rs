//! IQ2_XS: `x = ± d * (scale + 1/2) / 4 * magnitude`, magnitudes from a code book of eight at a time;
//! a scale of 4 bits per 16 elements.
//!
//! Bytes: d (half), 32 words (u16) of a 9-bit entry index and a 7-bit sign code on top, 8 of scales.

use super::{
    bits::half,
    code_book::{Expanded, IQ2_XS, even_signs, signed},
};

static BOOK: Expanded<8> = Expanded::new(|| IQ2_XS.expand());

/// Decodes 256 elements.
pub fn decode(block: &[u8; 74], out: &mut [f32; 256]) {
    let (book, d) = (&**BOOK, half(block, 0));
    let words = block[2..66].as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
    for ((g, word), out) in words.enumerate().zip(out.as_chunks_mut::<8>().0) {
        let scale = block[66 + g / 4] >> (4 * (g / 2 % 2)) & 15;
        let scale = d * (0.5 + f32::from(scale)) * 0.25;
        signed(scale, &book[usize::from(word & 511)], even_signs(u32::from(word >> 9)), out);
    }
}
