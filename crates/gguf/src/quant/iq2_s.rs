//! IQ2_S: `x = ± d * (scale + 1/2) / 4 * magnitude`, magnitudes from a code book of eight at a time;
//! a scale of 4 bits per 16 elements.
//!
//! Bytes: d (half), 32 of lower bits of entry indices, 32 of signs, 8 of upper bit pairs, 8 of scales.

use super::{
    bits::half,
    code_book::{Expanded, IQ2_S, signed},
};

static BOOK: Expanded<8> = Expanded::new(|| IQ2_S.expand());

/// Decodes 256 elements.
pub fn decode(block: &[u8; 82], out: &mut [f32; 256]) {
    let (book, d) = (&**BOOK, half(block, 0));
    for (g, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let (s, l) = (g / 4, g % 4);
        let high = usize::from(block[66 + s] >> (2 * l) & 3);
        let entry = &book[usize::from(block[2 + g]) | high << 8];
        let scale = f32::from(block[74 + s] >> (4 * (l / 2)) & 15);
        let scale = d * (0.5 + scale) * 0.25;
        signed(scale, entry, block[34 + g], out);
    }
}
