//! IQ3_S: `x = ± d * (1 + 2 scale) * magnitude`, magnitudes from a code book of four at a time;
//! a scale of 4 bits per 32 elements.
//!
//! Bytes: d (half), 64 of lower bits of entry numbers, 8 of ninth bits, 32 of signs, 4 of scales.

use super::{bits::half, code_book::expand, iq2_s::signed};

static BOOK: [[u8; 4]; 512] = expand(include_bytes!("iq3_s.base64"), &[1, 3, 5, 7, 9, 11, 13, 15]);

/// 256 numbers.
pub fn decode(block: &[u8; 110], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (g, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let s = g / 8;
        let ninth = usize::from(block[66 + s] >> (g % 8) & 1);
        let entry = &BOOK[usize::from(block[2 + g]) | ninth << 8];
        let scale = block[106 + s / 2] >> (4 * (s % 2)) & 15;
        let signs = block[74 + g / 2] >> (4 * (g % 2));
        signed(d * (1.0 + 2.0 * f32::from(scale)), entry, signs, out);
    }
}
