//! IQ3_XXS: `x = ± d * (scale + 1/2) / 2 * magnitude`, magnitudes from a code book of four at a time;
//! a scale of 4 bits per 32 elements.
//!
//! Bytes: d (half), 64 entry numbers, 8 words (u32) of four 7-bit sign codes and a scale on top.
//! The eighth sign makes the number of minus signs even.

use super::{bits::half, code_book::expand, iq2_s::signed};

static BOOK: [[u8; 4]; 256] =
    expand(include_bytes!("iq3_xxs.base64"), &[4, 12, 20, 28, 36, 44, 52, 62]);

/// 256 numbers.
pub fn decode(block: &[u8; 98], out: &mut [f32; 256]) {
    let d = half(block, 0);
    let words = block[66..].as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    for ((s, word), out) in words.enumerate().zip(out.as_chunks_mut::<32>().0) {
        let scale = d * (0.5 + f32::from(block[69 + 4 * s] >> 4)) * 0.5;
        for (g, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let code = word >> (7 * (g / 2)) & 127;
            let signs = (code | (code.count_ones() % 2) << 7) >> (4 * (g % 2));
            let entry = &BOOK[usize::from(block[2 + 8 * s + g])];
            signed(scale, entry, (signs & 15) as u8, out);
        }
    }
}
