//! K-quants, multiplied in integers.

use super::{
    formats::{at, word},
    integer_format::{IntegerFormat, IntegerScales, pair},
    lanes::{Lanes, WIDTH},
};

/// Sixteen bytes from four words of four.
#[inline(always)]
fn bytes_of(words: [u32; 4]) -> [u8; WIDTH] {
    let mut bytes = [0; WIDTH];
    for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    bytes
}

const TWO: u32 = 0x0303_0303;
const FOUR: u32 = 0x0f0f_0f0f;
const SIX: u32 = 0x3f3f_3f3f;

/// The scales and minima of Q4_K and Q5_K.
#[inline(always)]
fn scales_and_minima<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales {
    let words = [word(block, 4), word(block, 8), word(block, 12)];
    let packed = bytes_of([
        words[0] & SIX,
        words[2] & FOUR | (words[0] >> 6 & TWO) << 4,
        words[1] & SIX,
        words[2] >> 4 & FOUR | (words[1] >> 6 & TWO) << 4,
    ]);
    let (mut pairs, mut minima) = ([0; WIDTH], [0; WIDTH]);
    pairs[..8].copy_from_slice(&lanes.pairs(*at(&packed, 0)));
    for (i, minimum) in minima.iter_mut().enumerate() {
        *minimum = packed[8 + i / 2];
    }
    let (factor, minima_factor) = (lanes.half(*at(block, 0)), lanes.half(*at(block, 2)));
    IntegerScales { factor, pairs, minima_factor, minima }
}

/// Bit pairs in 32 bytes per 128 weights from `from` on: the lower bits of a unit.
#[inline(always)]
fn bit_pairs<L: Lanes>(lanes: L, block: &[u8], from: usize, unit: usize) -> L::Bytes {
    let bytes = lanes.bytes(at(block, from + 32 * (unit / 4)));
    lanes.shift(bytes, -2 * (unit % 4) as i32, 3)
}

#[derive(Debug)]
pub(super) struct Q2K;

impl IntegerFormat for Q2K {
    const BYTES: usize = 84;
    const HALF_SCALES: bool = true;
    const MINIMA: bool = true;
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales {
        let both = at::<WIDTH>(block, 0);
        IntegerScales {
            factor: lanes.half(*at(block, 80)),
            pairs: both.map(|byte| pair((byte & 15).into())),
            minima_factor: lanes.half(*at(block, 82)),
            minima: both.map(|byte| byte >> 4),
        }
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, (): (), block: &[u8], unit: usize) -> L::Words {
        lanes.signed_words(bit_pairs(lanes, block, 16, unit))
    }
}

#[derive(Debug)]
pub(super) struct Q3K;

impl IntegerFormat for Q3K {
    const BYTES: usize = 110;
    const HALF_SCALES: bool = true;
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales {
        let (first, second, high) = (word(block, 96), word(block, 100), word(block, 104));
        let packed = bytes_of([
            first & FOUR | (high & TWO) << 4,
            second & FOUR | (high >> 2 & TWO) << 4,
            first >> 4 & FOUR | (high >> 4 & TWO) << 4,
            second >> 4 & FOUR | (high >> 6 & TWO) << 4,
        ]);
        let pairs = packed.map(|scale| pair(i16::from(scale) - 32));
        IntegerScales::new(lanes.half(*at(block, 108)), pairs)
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, (): (), block: &[u8], unit: usize) -> L::Words {
        let third = lanes.shift(lanes.bytes(at(block, 0)), 2 - unit as i32, 4);
        let all = lanes.or(bit_pairs(lanes, block, 32, unit), third);
        lanes.signed_words(lanes.minus(all, 4))
    }
}

#[derive(Debug)]
pub(super) struct Q4K;

impl IntegerFormat for Q4K {
    const BYTES: usize = 144;
    const HALF_SCALES: bool = false;
    const MINIMA: bool = true;
    const UNROLLED: bool = true;
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales {
        scales_and_minima(lanes, block)
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, (): (), block: &[u8], unit: usize) -> L::Words {
        let both = lanes.unsigned_words(at(block, 16 + 32 * (unit / 2)));
        if unit.is_multiple_of(2) { lanes.low_nibbles(both) } else { lanes.high_nibbles(both) }
    }
}

#[derive(Debug)]
pub(super) struct Q5K;

impl IntegerFormat for Q5K {
    const BYTES: usize = 176;
    const HALF_SCALES: bool = false;
    const MINIMA: bool = true;
    const UNROLLED: bool = true;
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales {
        scales_and_minima(lanes, block)
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, (): (), block: &[u8], unit: usize) -> L::Words {
        let nibbles = lanes.bytes(at(block, 48 + 32 * (unit / 2)));
        let low = lanes.shift(nibbles, if unit.is_multiple_of(2) { 0 } else { -4 }, 15);
        let fifth = lanes.shift(lanes.bytes(at(block, 16)), 4 - unit as i32, 16);
        lanes.signed_words(lanes.or(low, fifth))
    }
}

#[derive(Debug)]
pub(super) struct Q6K;

impl IntegerFormat for Q6K {
    const BYTES: usize = 210;
    const HALF_SCALES: bool = true;
    const UNROLLED: bool = true;
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales {
        let pairs = at::<WIDTH>(block, 192).map(|scale| pair(scale.cast_signed().into()));
        IntegerScales::new(lanes.half(*at(block, 208)), pairs)
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, (): (), block: &[u8], unit: usize) -> L::Words {
        let (n, group) = (unit / 4, unit % 4);
        let low = lanes.bytes(at(block, 64 * n + 32 * (group % 2)));
        let low = lanes.shift(low, if group < 2 { 0 } else { -4 }, 15);
        let high = lanes.shift(lanes.bytes(at(block, 128 + 32 * n)), 4 - 2 * group as i32, 48);
        lanes.signed_words(lanes.minus(lanes.or(low, high), 32))
    }
}
