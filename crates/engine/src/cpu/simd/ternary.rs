//! TQ1_0 and TQ2_0, multiplied in integers: levels -1, 0 and 1, one scale per block.

use super::{
    code_books::unit_pairs,
    formats::at,
    integer_format::{IntegerFormat, IntegerScales},
    lanes::Lanes,
};

#[derive(Debug)]
pub(super) struct Tq2;

impl IntegerFormat for Tq2 {
    const BYTES: usize = 66;
    type Pairs = [i32; 8];
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        IntegerScales::new(lanes.half(*at(block, 64)), unit_pairs(|_| 1))
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, (): (), block: &[u8], unit: usize) -> L::Words {
        let bytes = lanes.bytes(at(block, 32 * (unit / 4)));
        lanes.signed_words(lanes.minus(lanes.shift(bytes, -2 * (unit % 4) as i32, 3), 1))
    }
}

#[derive(Debug)]
pub(super) struct Tq1;

impl IntegerFormat for Tq1 {
    const BYTES: usize = 54;
    type Pairs = [i32; 8];
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        IntegerScales::new(lanes.half(*at(block, 52)), unit_pairs(|_| 1))
    }

    /// Five units of 32 bytes' digits, then five halves of 16 bytes', then four digits of the last four bytes.
    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, (): (), block: &[u8], unit: usize) -> L::Words {
        let mut digits = [0; 32];
        for (i, out) in digits.iter_mut().enumerate() {
            let (byte, place) = match (unit, i / 16) {
                (0..5, _) => (block[i], unit),
                (7, 1) => (block[48 + i % 4], i % 16 / 4),
                (_, half) => (block[32 + i % 16], 2 * (unit - 5) + half),
            };
            let fraction = byte.wrapping_mul([1, 3, 9, 27, 81][place]);
            *out = ((u16::from(fraction) * 3) >> 8) as u8;
        }
        lanes.signed_words(lanes.minus(lanes.bytes(&digits), 1))
    }
}
