//! IQ3_XXS: `x = ± d * (scale + 1/2) / 2 * magnitude`, magnitudes from a code book of four at a time;
//! a scale of 4 bits per 32 elements.
//!
//! Bytes: d (half), 64 entry indices, 8 words (u32) of four 7-bit sign codes and a scale on top.
//! The eighth sign makes the number of minus signs even.

use super::{
    bits::half,
    code_book::{Expanded, IQ3_XXS, even_signs, signed},
};

static BOOK: Expanded<4> = Expanded::new(|| IQ3_XXS.expand());

/// Decodes 256 elements.
pub fn decode(block: &[u8; 98], out: &mut [f32; 256]) {
    let (book, d) = (&**BOOK, half(block, 0));
    let words = block[66..].as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    for ((s, word), out) in words.enumerate().zip(out.as_chunks_mut::<32>().0) {
        let scale = d * (0.5 + f32::from(block[69 + 4 * s] >> 4)) * 0.5;
        for (g, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let signs = even_signs(word >> (7 * (g / 2))) >> (4 * (g % 2));
            let entry = &book[usize::from(block[2 + 8 * s + g])];
            signed(scale, entry, signs, out);
        }
    }
}
