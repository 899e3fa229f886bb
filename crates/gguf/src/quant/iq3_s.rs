//! IQ3_S: `x = ± d * (1 + 2 scale) * magnitude`, magnitudes from a code book of four at a time;
//! a scale of 4 bits per 32 elements.
//!
//! Bytes: d (half), 64 of lower bits of entry indices, 8 of ninth bits, 32 of signs, 4 of scales.

use super::{
    bits::half,
    code_book::{Expanded, IQ3_S, signed},
};

static BOOK: Expanded<4> = Expanded::new(|| IQ3_S.expand());

/// Decodes 256 elements.
pub fn decode(block: &[u8; 110], out: &mut [f32; 256]) {
    let (book, d) = (&**BOOK, half(block, 0));
    for (g, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let s = g / 8;
        let ninth = usize::from(block[66 + s] >> (g % 8) & 1);
        let entry = &book[usize::from(block[2 + g]) | ninth << 8];
        let scale = block[106 + s / 2] >> (4 * (s % 2)) & 15;
        let signs = block[74 + g / 2] >> (4 * (g % 2));
        signed(d * (1.0 + 2.0 * f32::from(scale)), entry, signs, out);
    }
}
