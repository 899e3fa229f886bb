//! IQ formats with blocks of 256 weights, multiplied in integers: levels are looked up in tables.

use std::sync::LazyLock;

use rullama_gguf::quant::{code_book, code_book::CodeBook, iq4_nl};

use super::{
    formats::{at, word},
    integer_format::{IntegerFormat, IntegerScales, pair},
    lanes::{Lanes, WIDTH},
};

/// The entries of a code book as signed bytes, the first in the lowest bits. Indices of eleven bits need no check.
type Entries = [u64; 2048];

/// The entries of a book of `ELEMENTS` levels each, times `by`.
fn entries_of<const ELEMENTS: usize>(book: &CodeBook, by: i8) -> Box<Entries> {
    let mut entries = Box::new([0; 2048]);
    for (out, levels) in entries.iter_mut().zip(book.expand::<ELEMENTS>()) {
        let byte = |level: &i8| u64::from((level * by).cast_unsigned());
        *out = levels.iter().rev().fold(0, |entry, level| entry << 8 | byte(level));
    }
    entries
}

/// The signs of eight weights by their 7-bit code: the eighth makes the number of minus signs even.
static EVEN_SIGNS: [u8; 128] = {
    let mut signs = [0; 128];
    let mut code: u8 = 0;
    while code < 128 {
        signs[code as usize] = code | (code.count_ones() as u8 & 1) << 7;
        code += 1;
    }
    signs
};

/// Four values; `array::map` is a function that compilers may not inline.
#[inline(always)]
fn four<T>(value: impl Fn(usize) -> T) -> [T; 4] {
    [value(0), value(1), value(2), value(3)]
}

/// The signs of a unit, from four codes of seven bits.
#[inline(always)]
fn even_signs(code: impl Fn(usize) -> u32) -> u32 {
    u32::from_le_bytes(four(|l| EVEN_SIGNS[code(l) as usize & 127]))
}

/// The levels of a unit from four entries of eight, negated where a sign is set.
#[inline(always)]
fn signed<L: Lanes>(lanes: L, entries: [u64; 4], signs: u32) -> L::Words {
    lanes.signed_words(lanes.negate(lanes.eights(entries), signs))
}

/// Four times two entries of four levels.
#[inline(always)]
fn of_fours(book: &Entries, index: impl Fn(usize) -> usize) -> [u64; 4] {
    four(|l| book[index(2 * l)] | book[index(2 * l + 1)] << 32)
}

/// Two scales of four bits per byte, as `2 · scale + 1`: of the halves of each unit.
#[inline(always)]
fn odd_halves(bytes: [u8; 8]) -> [i32; WIDTH] {
    let mut pairs = [0; WIDTH];
    for (i, out) in pairs.iter_mut().enumerate() {
        *out = pair(i16::from(bytes[i / 2] >> (4 * (i % 2)) & 15) * 2 + 1);
    }
    pairs
}

#[inline(always)]
fn short(block: &[u8], from: usize) -> u16 {
    u16::from_le_bytes(*at(block, from))
}

/// Eight scales of units.
#[inline(always)]
pub(super) fn unit_pairs(scale: impl Fn(usize) -> i16) -> [i32; 8] {
    let mut pairs = [0; 8];
    for (unit, out) in pairs.iter_mut().enumerate() {
        *out = pair(scale(unit));
    }
    pairs
}

#[derive(Debug)]
pub(super) struct Iq4Xs;

impl IntegerFormat for Iq4Xs {
    const BYTES: usize = 136;
    type Pairs = [i32; 8];
    type Book = ();

    #[inline(always)]
    fn book() {}

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        let (high, low) = (short(block, 2), word(block, 4));
        let scale = |unit: usize| {
            let high = (high >> (2 * unit) & 3).cast_signed();
            (low >> (4 * unit) & 15) as i16 | high << 4
        };
        IntegerScales::new(lanes.half(*at(block, 0)), unit_pairs(|unit| scale(unit) - 32))
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, (): (), block: &[u8], unit: usize) -> L::Words {
        let nibbles = lanes.split_nibbles(at(block, 8 + 16 * unit));
        lanes.signed_words(lanes.look_up(&iq4_nl::LEVELS, nibbles))
    }
}

#[derive(Debug)]
pub(super) struct Iq3S;

impl IntegerFormat for Iq3S {
    const BYTES: usize = 110;
    type Pairs = [i32; 8];
    type Book = &'static Entries;

    #[inline(always)]
    fn book() -> Self::Book {
        static BOOK: LazyLock<Box<Entries>> =
            LazyLock::new(|| entries_of::<4>(&code_book::IQ3_S, 1));
        &BOOK
    }

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        let scale = |unit: usize| i16::from(block[106 + unit / 2] >> (4 * (unit % 2)) & 15);
        IntegerScales::new(lanes.half(*at(block, 0)), unit_pairs(|unit| 2 * scale(unit) + 1))
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, book: Self::Book, block: &[u8], unit: usize) -> L::Words {
        let ninth = |g: usize| usize::from(block[66 + unit] >> g & 1) << 8;
        let entries = of_fours(book, |g| usize::from(block[2 + 8 * unit + g]) | ninth(g));
        signed(lanes, entries, word(block, 74 + 4 * unit))
    }
}

#[derive(Debug)]
pub(super) struct Iq3Xxs;

impl IntegerFormat for Iq3Xxs {
    const BYTES: usize = 98;
    type Pairs = [i32; 8];
    type Book = &'static Entries;

    #[inline(always)]
    fn book() -> Self::Book {
        static BOOK: LazyLock<Box<Entries>> =
            LazyLock::new(|| entries_of::<4>(&code_book::IQ3_XXS, 1));
        &BOOK
    }

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        let scale = |unit: usize| i16::from(block[69 + 4 * unit] >> 4);
        let pairs = unit_pairs(|unit| 2 * scale(unit) + 1);
        IntegerScales::new(lanes.half(*at(block, 0)) / 4.0, pairs)
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, book: Self::Book, block: &[u8], unit: usize) -> L::Words {
        let entries = of_fours(book, |g| block[2 + 8 * unit + g].into());
        let codes = word(block, 66 + 4 * unit);
        signed(lanes, entries, even_signs(|l| codes >> (7 * l)))
    }
}

#[derive(Debug)]
pub(super) struct Iq2S;

impl IntegerFormat for Iq2S {
    const BYTES: usize = 82;
    type Pairs = [i32; WIDTH];
    type Book = &'static Entries;

    #[inline(always)]
    fn book() -> Self::Book {
        static BOOK: LazyLock<Box<Entries>> =
            LazyLock::new(|| entries_of::<8>(&code_book::IQ2_S, 1));
        &BOOK
    }

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        IntegerScales::new(lanes.half(*at(block, 0)) / 8.0, odd_halves(*at(block, 74)))
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, book: Self::Book, block: &[u8], unit: usize) -> L::Words {
        let high = |l: usize| usize::from(block[66 + unit] >> (2 * l) & 3) << 8;
        let entries = four(|l| book[usize::from(block[2 + 4 * unit + l]) | high(l)]);
        signed(lanes, entries, word(block, 34 + 4 * unit))
    }
}

#[derive(Debug)]
pub(super) struct Iq2Xs;

impl IntegerFormat for Iq2Xs {
    const BYTES: usize = 74;
    type Pairs = [i32; WIDTH];
    type Book = &'static Entries;

    #[inline(always)]
    fn book() -> Self::Book {
        static BOOK: LazyLock<Box<Entries>> =
            LazyLock::new(|| entries_of::<8>(&code_book::IQ2_XS, 1));
        &BOOK
    }

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        IntegerScales::new(lanes.half(*at(block, 0)) / 8.0, odd_halves(*at(block, 66)))
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, book: Self::Book, block: &[u8], unit: usize) -> L::Words {
        let code = |l: usize| u32::from(short(block, 2 + 8 * unit + 2 * l));
        let entries = four(|l| book[code(l) as usize & 511]);
        signed(lanes, entries, even_signs(|l| code(l) >> 9))
    }
}

#[derive(Debug)]
pub(super) struct Iq2Xxs;

impl IntegerFormat for Iq2Xxs {
    const BYTES: usize = 66;
    type Pairs = [i32; 8];
    type Book = &'static Entries;

    #[inline(always)]
    fn book() -> Self::Book {
        static BOOK: LazyLock<Box<Entries>> =
            LazyLock::new(|| entries_of::<8>(&code_book::IQ2_XXS, 1));
        &BOOK
    }

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        let scale = |unit: usize| i16::from(block[9 + 8 * unit] >> 4);
        let pairs = unit_pairs(|unit| 2 * scale(unit) + 1);
        IntegerScales::new(lanes.half(*at(block, 0)) / 8.0, pairs)
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, book: Self::Book, block: &[u8], unit: usize) -> L::Words {
        let (index, codes) = (at::<_, 4>(block, 2 + 8 * unit), word(block, 6 + 8 * unit));
        let entries = four(|l| book[usize::from(index[l])]);
        signed(lanes, entries, even_signs(|l| codes >> (7 * l)))
    }
}

/// The levels of IQ1 are `8 · level ± 1`, with an eighth of the scale.
const IQ1_STEPS: i8 = 8;

#[derive(Debug)]
pub(super) struct Iq1S;

impl IntegerFormat for Iq1S {
    const BYTES: usize = 50;
    type Pairs = [i32; 8];
    type Book = &'static Entries;

    #[inline(always)]
    fn book() -> Self::Book {
        static BOOK: LazyLock<Box<Entries>> =
            LazyLock::new(|| entries_of::<8>(&code_book::IQ1, IQ1_STEPS));
        &BOOK
    }

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        let scale = |unit: usize| (short(block, 34 + 2 * unit) >> 12 & 7).cast_signed();
        let pairs = unit_pairs(|unit| 2 * scale(unit) + 1);
        IntegerScales::new(lanes.half(*at(block, 0)) / 8.0, pairs)
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, book: Self::Book, block: &[u8], unit: usize) -> L::Words {
        let bits = short(block, 34 + 2 * unit);
        let high = |l: usize| usize::from(bits >> (3 * l) & 7) << 8;
        let entries = four(|l| book[usize::from(block[2 + 4 * unit + l]) | high(l)]);
        let down = if bits >> 15 == 1 { 1 } else { 255 };
        lanes.signed_words(lanes.minus(lanes.eights(entries), down))
    }
}

#[derive(Debug)]
pub(super) struct Iq1M;

impl IntegerFormat for Iq1M {
    const BYTES: usize = 56;
    type Pairs = [i32; WIDTH];
    type Book = &'static Entries;

    #[inline(always)]
    fn book() -> Self::Book {
        static BOOK: LazyLock<Box<Entries>> =
            LazyLock::new(|| entries_of::<8>(&code_book::IQ1, IQ1_STEPS));
        &BOOK
    }

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs> {
        let words = four(|i| short(block, 48 + 2 * i));
        let d = (0..4).fold(0, |d, i| d | words[i] >> 12 << (4 * i));
        let mut pairs = [0; WIDTH];
        for (i, out) in pairs.iter_mut().enumerate() {
            let scale = (words[i / 4] >> (3 * (i % 4)) & 7).cast_signed();
            *out = pair(2 * scale + 1);
        }
        IntegerScales::new(lanes.half(d.to_le_bytes()) / 8.0, pairs)
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, book: Self::Book, block: &[u8], unit: usize) -> L::Words {
        let nibbles = usize::from(short(block, 32 + 2 * unit));
        let nibble = |l: usize| nibbles >> (4 * l);
        let index = |l: usize| usize::from(block[4 * unit + l]) | (nibble(l) & 7) << 8;
        let entries = four(|l| book[index(l)]);
        let up = |l: usize| if nibble(l) & 8 == 0 { 0x0101_0101_0101_0101 } else { u64::MAX };
        let all = lanes.plus(lanes.eights(entries), lanes.eights(four(up)));
        lanes.signed_words(all)
    }
}

/// Runs `$body` with `$format` as the type of a format with code books or ternary levels; `$other` for other formats.
macro_rules! with_code_book_format {
    ($dtype:expr, $format:ident => $body:expr, $other:expr) => {
        match $dtype {
            DType::IQ4_XS => {
                type $format = $crate::cpu::simd::code_books::Iq4Xs;
                $body
            }
            DType::IQ3_S => {
                type $format = $crate::cpu::simd::code_books::Iq3S;
                $body
            }
            DType::IQ3_XXS => {
                type $format = $crate::cpu::simd::code_books::Iq3Xxs;
                $body
            }
            DType::IQ2_S => {
                type $format = $crate::cpu::simd::code_books::Iq2S;
                $body
            }
            DType::IQ2_XS => {
                type $format = $crate::cpu::simd::code_books::Iq2Xs;
                $body
            }
            DType::IQ2_XXS => {
                type $format = $crate::cpu::simd::code_books::Iq2Xxs;
                $body
            }
            DType::IQ1_S => {
                type $format = $crate::cpu::simd::code_books::Iq1S;
                $body
            }
            DType::IQ1_M => {
                type $format = $crate::cpu::simd::code_books::Iq1M;
                $body
            }
            DType::TQ2_0 => {
                type $format = $crate::cpu::simd::ternary::Tq2;
                $body
            }
            DType::TQ1_0 => {
                type $format = $crate::cpu::simd::ternary::Tq1;
                $body
            }
            _ => $other,
        }
    };
}
pub(super) use with_code_book_format;
