//! K-quants, multiplied in integers.

use super::{
    formats::{at, word},
    integer_format::{ByteLevels, IntegerFormat, IntegerScales, pair},
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

/// The scales and minima of Q4_K and Q5_K, eight bytes each, put together in registers: bytes that were stored one by one would have to reach the
/// cache before they could be loaded as a vector.
#[inline(always)]
fn scales_and_minima<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<[i32; 8]> {
    const FOUR: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    const SIX: u64 = 0x3f3f_3f3f_3f3f_3f3f;
    const LOW: u64 = 0xffff_ffff;
    // The low halves have scales, the high ones minima.
    let first = u64::from_le_bytes(*at(block, 4));
    let nibbles = u64::from(word(block, 12));
    let second = (nibbles | nibbles << 28) & FOUR | (first >> 6 << 4) & (SIX ^ FOUR);
    let first = first & SIX;
    let scales = first & LOW | second << 32;
    let minima = first >> 32 | second & !LOW;
    let [factor, minima_factor] = lanes.two_halves(*at(block, 0));
    IntegerScales { factor, pairs: lanes.pairs(scales), minima_factor, minima: twice(minima) }
}

/// Eight bytes twice.
#[inline(always)]
fn twice(bytes: u64) -> [u8; WIDTH] {
    let mut out = [0; WIDTH];
    out[..8].copy_from_slice(&bytes.to_le_bytes());
    out[8..].copy_from_slice(&bytes.to_le_bytes());
    out
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
    const MINIMA: bool = true;
    const UNROLLED: bool = true;
    type Pairs = [i32; WIDTH];
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        let both = at::<_, WIDTH>(block, 0);
        IntegerScales {
            factor: lanes.half(*at(block, 80)),
            pairs: both.map(|byte| pair((byte & 15).into())),
            minima_factor: lanes.half(*at(block, 82)),
            minima: std::array::from_fn(|i| both[2 * (i % 8) + i / 8] >> 4),
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
    const UNROLLED: bool = true;
    type Pairs = [i32; WIDTH];
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
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
    const MINIMA: bool = true;
    const UNROLLED: bool = true;
    const BYTE_LEVELS: Option<ByteLevels> = Some(ByteLevels::Four { nibbles: 16 });
    type Pairs = [i32; 8];
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
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
    const MINIMA: bool = true;
    const UNROLLED: bool = true;
    const BYTE_LEVELS: Option<ByteLevels> = Some(ByteLevels::Five { nibbles: 48, bits: 16 });
    type Pairs = [i32; 8];
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        scales_and_minima(lanes, block)
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, (): (), block: &[u8], unit: usize) -> L::Words {
        let nibbles = (at(block, 48 + 32 * (unit / 2)), unit % 2 == 1);
        lanes.levels(nibbles, (at(block, 16), 4 - unit as i32, 16), 0)
    }
}

#[derive(Debug)]
pub(super) struct Q6K;

impl IntegerFormat for Q6K {
    const BYTES: usize = 210;
    const UNROLLED: bool = true;
    const BYTE_LEVELS: Option<ByteLevels> =
        Some(ByteLevels::Six { nibbles: 0, bits: 128, scales: 192 });
    type Pairs = [i32; WIDTH];
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        let pairs = at::<_, WIDTH>(block, 192).map(|scale| pair(scale.cast_signed().into()));
        IntegerScales::new(lanes.half(*at(block, 208)), pairs)
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, (): (), block: &[u8], unit: usize) -> L::Words {
        let (n, group) = (unit / 4, unit % 4);
        let nibbles = (at(block, 64 * n + 32 * (group % 2)), group >= 2);
        lanes.levels(nibbles, (at(block, 128 + 32 * n), 4 - 2 * group as i32, 48), 32)
    }
}
