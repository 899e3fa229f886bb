//! IQ2_XXS: `x = ± d * (scale + 1/2) / 4 * magnitude`, magnitudes from a code book of eight at a time;
//! a scale of 4 bits per 32 elements.
//!
//! Bytes: d (half), then for every 32 elements 4 entry indices and a word (u32) of four 7-bit sign codes with the scale on
//! top.

use super::{
    bits::half,
    code_book::{Expanded, IQ2_XXS, even_signs, signed},
};

static BOOK: Expanded<8> = Expanded::new(|| IQ2_XXS.expand());

/// Decodes 256 elements.
pub fn decode(block: &[u8; 66], out: &mut [f32; 256]) {
    let (book, d) = (&**BOOK, half(block, 0));
    let groups = block[2..].as_chunks::<8>().0;
    for (&[a, b, c, e, word @ ..], out) in groups.iter().zip(out.as_chunks_mut::<32>().0) {
        let word = u32::from_le_bytes(word);
        let scale = d * (0.5 + (word >> 28) as f32) * 0.25;
        for ((l, number), out) in (0..).zip([a, b, c, e]).zip(out.as_chunks_mut::<8>().0) {
            signed(scale, &book[usize::from(number)], even_signs(word >> (7 * l)), out);
        }
    }
}
