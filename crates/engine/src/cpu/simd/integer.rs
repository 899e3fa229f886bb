//! Dot products in integers of rows with blocks of 256 weights: `level · scale` is an integer of 16 bits, and an activation is two of them,
//! which together hold the bits of its float (three bytes on levels with kernels in bytes, see `bytes.rs` and `block_bytes.rs`). A block is added
//! up without rounding.

use std::marker::PhantomData;

use super::{
    Kernel,
    block_bytes::{self, BlockDigits, SplitBlock},
    bytes::{self, ByteDigits, SplitBytes},
    formats::at,
    gemv::{Column, Dots, for_units, prefetch_distance},
    integer_format::{ByteLevels, IntegerFormat, IntegerScales},
    lanes::{Lanes, WIDTH},
    vector::halves,
};

/// Weights of a block.
const BLOCK: usize = 256;

/// The activations of a block as fixed-point numbers: `x = (high · 2¹⁶ + low) · step`, within half a step. The largest has at least 29 bits, so
/// that rounding is far below that of f32 sums.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct Digits {
    high: [[i16; 32]; 8],
    low: [[i16; 32]; 8],
    /// The sums of the first halves of units, then of the second ones: what minima are multiplied with.
    sums: [f32; WIDTH],
    /// A power of two; NaN if an activation is infinite or NaN.
    step: f32,
}

/// A column as fixed-point numbers, in one of three forms.
#[derive(Debug, Default)]
pub(super) struct Fixed {
    words: Vec<Digits>,
    pub(super) bytes: Vec<ByteDigits>,
    pub(super) blocks: Vec<BlockDigits>,
}

/// Prepares a column for a format.
pub(super) struct Prepare<'a> {
    pub(super) x: &'a [f32],
    /// The format's levels, if it has kernels in bytes.
    pub(super) byte_levels: Option<ByteLevels>,
}

impl Kernel for Prepare<'_> {
    type Output = Fixed;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Fixed {
        let (blocks, mut fixed) = (self.x.as_chunks().0.iter(), Fixed::default());
        if let (Some(levels), Some(_)) = (self.byte_levels, lanes.block_bytes()) {
            fixed.blocks.reserve_exact(blocks.len());
            blocks.for_each(|block| fixed.blocks.push(SplitBlock(block, levels).run(lanes)));
        } else if self.byte_levels.is_some() && lanes.by_bytes().is_some() {
            fixed.bytes.reserve_exact(blocks.len());
            blocks.for_each(|block| fixed.bytes.push(SplitBytes(block).run(lanes)));
        } else {
            fixed.words.reserve_exact(blocks.len());
            blocks.for_each(|block| fixed.words.push(Split(block).run(lanes)));
        }
        fixed
    }
}

/// The exponent of the power of two that scales the largest magnitude of a block, plus `more` units in the last place, below 2 to the power of
/// `bits`. `None` if an activation is infinite or NaN. The power and its inverse are normal numbers, so that steps are at least 2⁻¹²⁶.
#[inline(always)]
pub(super) fn exponent(x: &[f32], more: u32, bits: i32) -> Option<i32> {
    const INFINITE: u32 = 0x7F80_0000;
    let magnitude = |x: &f32| x.to_bits() & !(1 << 31);
    let largest = x.iter().map(magnitude).fold(0, u32::max);
    (largest < INFINITE).then(|| (126 + bits - ((largest + more) >> 23).cast_signed()).min(126))
}

/// Two to the power of an exponent.
#[inline(always)]
pub(super) fn power(exponent: i32) -> f32 {
    f32::from_bits((exponent + 127).cast_unsigned() << 23)
}

/// A fixed-point number as three digits of 8 bits, the lowest first. It is rounded to nearest at each digit: the low digit is the low byte,
/// read as a signed number, and the rest gets its carry.
#[inline(always)]
pub(super) fn byte_digits(fixed: i32) -> [i8; 3] {
    let middle = (fixed + (1 << 7)) >> 8;
    [fixed as i8, middle as i8, ((middle + (1 << 7)) >> 8) as i8]
}

struct Split<'a>(&'a [f32; BLOCK]);

impl Kernel for Split<'_> {
    type Output = Digits;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Digits {
        let mut digits =
            Digits { high: [[0; 32]; 8], low: [[0; 32]; 8], sums: [0.0; WIDTH], step: f32::NAN };
        let Some(exponent) = exponent(self.0, 0, 30) else { return digits };
        digits.step = power(-exponent);
        let factor = power(exponent);
        for (unit, x) in self.0.as_chunks::<32>().0.iter().enumerate() {
            let x = halves(lanes, x);
            for (half, x) in x.into_iter().enumerate() {
                digits.sums[unit + 8 * half] = lanes.sum(x);
                let fixed = lanes.integers(lanes.mul(x, lanes.splat(factor)));
                for (i, fixed) in fixed.into_iter().enumerate() {
                    digits.high[unit][WIDTH * half + i] = ((fixed + (1 << 15)) >> 16) as i16;
                    // What the high digit, rounded to nearest, leaves: the low half of the bits, read as a signed number.
                    digits.low[unit][WIDTH * half + i] = fixed as i16;
                }
            }
        }
        digits
    }
}

/// The scaled levels of a unit.
#[inline(always)]
pub(super) fn scaled<L: Lanes, F: IntegerFormat>(
    lanes: L,
    book: F::Book,
    block: &[u8],
    pairs: &F::Pairs,
    unit: usize,
) -> L::Words {
    let levels = F::levels(lanes, book, block, unit);
    let pairs = pairs.as_ref();
    match pairs.len() {
        WIDTH => lanes.scale_halves(levels, at(pairs, 0), unit),
        _ => lanes.scale_words(levels, pairs[unit]),
    }
}

/// The next block of each row, and its scales.
#[inline(always)]
pub(super) fn next_blocks<'a, L: Lanes, F: IntegerFormat, const R: usize>(
    lanes: L,
    rest: &mut [&'a [u8]; R],
    distance: usize,
) -> ([&'a [u8]; R], [IntegerScales<F::Pairs>; R]) {
    let mut block: [&[u8]; R] = [&[]; R];
    for (block, rest) in block.iter_mut().zip(rest) {
        (*block, *rest) = rest.split_at(F::BYTES);
        lanes.prefetch_after(block, distance);
    }
    let mut scales = [F::scales(lanes, block[0]); R];
    for r in 1..R {
        scales[r] = F::scales(lanes, block[r]);
    }
    (block, scales)
}

/// Dot products of an [`IntegerFormat`].
#[derive(Debug)]
pub(super) struct IntegerDots<F>(PhantomData<F>);

impl<F: IntegerFormat> Dots for IntegerDots<F> {
    const SEVERAL_ROWS: bool = F::UNROLLED;

    #[inline(always)]
    fn two_rows<L: Lanes>(lanes: L) -> bool {
        F::BYTE_LEVELS.is_some() && lanes.by_bytes().is_some()
    }

    #[inline(always)]
    fn dots<L: Lanes, const R: usize, const C: usize>(
        lanes: L,
        rows: &[&[u8]; R],
        columns: &[Column<'_>; C],
    ) -> [[f32; C]; R] {
        if let (Some(levels), Some(by_bytes)) = (F::BYTE_LEVELS, lanes.by_bytes()) {
            return bytes::dots::<L, L::ByBytes, F, R, C>((lanes, by_bytes), levels, rows, columns);
        }
        if let (Some(levels), Some(bytes)) = (F::BYTE_LEVELS, lanes.block_bytes()) {
            return block_bytes::dots::<L, F, R, C>((lanes, bytes), levels, rows, columns);
        }
        let book = F::book();
        let (mut sums, mut minima) = ([[lanes.splat(0.0); C]; R], [[lanes.splat(0.0); C]; R]);
        let blocks = rows[0].len() / F::BYTES;
        let mut x: [&[Digits]; C] = [&[]; C];
        for (x, column) in x.iter_mut().zip(columns) {
            *x = &column.fixed.words[..blocks];
        }
        let (mut rest, distance) = (*rows, prefetch_distance(rows));
        for index in 0..blocks {
            let (block, scales) = next_blocks::<L, F, R>(lanes, &mut rest, distance);
            let mut pairs = [scales[0].pairs; R];
            for r in 1..R {
                pairs[r] = scales[r].pairs;
            }
            // From memory, broadcasting costs no more than a load; the compiler would shuffle registers instead.
            let pairs = lanes.in_memory(&pairs);
            // At most 2¹² · 2¹⁵ · 16, which fits.
            let mut dots = [[[lanes.zero_ints(); 2]; C]; R];
            if F::UNROLLED {
                for_units!(UNIT => {
                    for r in 0..R {
                        let w = scaled::<L, F>(lanes, book, block[r], &pairs[r], UNIT);
                        for c in 0..C {
                            let x = &x[c][index];
                            for (dot, x) in dots[r][c].iter_mut().zip([&x.high[UNIT], &x.low[UNIT]]) {
                                let x = lanes.words(x);
                                *dot = match UNIT {
                                    0 => lanes.multiply_words(w, x),
                                    _ => lanes.dot_words(w, x, *dot),
                                };
                            }
                        }
                    }
                });
            } else {
                for unit in 0..8 {
                    for r in 0..R {
                        let w = scaled::<L, F>(lanes, book, block[r], &pairs[r], unit);
                        for c in 0..C {
                            let x = &x[c][index];
                            for (dot, x) in dots[r][c].iter_mut().zip([&x.high[unit], &x.low[unit]])
                            {
                                *dot = lanes.dot_words(w, lanes.words(x), *dot);
                            }
                        }
                    }
                }
            }
            for r in 0..R {
                for c in 0..C {
                    let (high, low) = (lanes.floats(dots[r][c][0]), lanes.floats(dots[r][c][1]));
                    let dot = lanes.fma(lanes.splat(65536.0), high, low);
                    let factor = lanes.splat(scales[r].factor * x[c][index].step);
                    sums[r][c] = lanes.fma(factor, dot, sums[r][c]);
                }
                if F::MINIMA {
                    let all = lanes.unsigned(&scales[r].minima);
                    let all = lanes.mul(all, lanes.splat(scales[r].minima_factor));
                    for c in 0..C {
                        minima[r][c] = lanes.fma(all, lanes.load(&x[c][index].sums), minima[r][c]);
                    }
                }
            }
        }
        let mut out = [[0.0; C]; R];
        for r in 0..R {
            for c in 0..C {
                out[r][c] = lanes.sum(lanes.sub(sums[r][c], minima[r][c]));
            }
        }
        out
    }
}
