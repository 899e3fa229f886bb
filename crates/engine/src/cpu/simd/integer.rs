//! Dot products in integers of rows with blocks of 256 weights: `level · scale` is an integer of 16 bits, and an activation is two of them,
//! which together hold the bits of its float. A block is added up without rounding.

use std::{hint::black_box, marker::PhantomData};

use super::{
    Kernel,
    gemv::for_units,
    integer_format::IntegerFormat,
    lanes::{Lanes, Tile, WIDTH},
    run,
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
    /// The sums of the half units: what minima are multiplied with.
    sums: [f32; WIDTH],
    /// A power of two; NaN if an activation is infinite or NaN.
    step: f32,
}

/// The digits of a column, a block at a time.
pub(super) fn digits(x: &[f32]) -> Vec<Digits> {
    x.as_chunks::<BLOCK>().0.iter().map(|block| run(Split(block))).collect()
}

pub(super) struct Split<'a>(pub(super) &'a [f32; BLOCK]);

impl Kernel for Split<'_> {
    type Output = Digits;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Digits {
        const INFINITE: u32 = 0x7F80_0000;
        let magnitude = |x: &f32| x.to_bits() & !(1 << 31);
        let largest = self.0.iter().map(magnitude).fold(0, u32::max);
        let mut digits =
            Digits { high: [[0; 32]; 8], low: [[0; 32]; 8], sums: [0.0; WIDTH], step: f32::NAN };
        if largest >= INFINITE {
            return digits;
        }
        // The largest magnitude becomes less than 2³⁰. Both powers of two are normal numbers, so that steps are at least 2⁻¹²⁶.
        let exponent = (156 - (largest >> 23).cast_signed()).min(126);
        let power = |exponent: i32| f32::from_bits((exponent + 127).cast_unsigned() << 23);
        digits.step = power(-exponent);
        let factor = power(exponent);
        for (unit, x) in self.0.as_chunks::<32>().0.iter().enumerate() {
            let x = halves(lanes, x);
            for (half, x) in x.into_iter().enumerate() {
                digits.sums[2 * unit + half] = lanes.sum(x);
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

/// `out[c] = row · columns[c]`
pub(super) struct IntegerRow<'a, F> {
    pub(super) row: &'a [u8],
    pub(super) columns: &'a [&'a [Digits]],
    pub(super) out: &'a mut [f32],
    pub(super) format: PhantomData<F>,
}

impl<F: IntegerFormat> Kernel for IntegerRow<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        match L::TILE {
            Tile::Large => self.all::<L, 4>(lanes),
            Tile::Medium => self.all::<L, 2>(lanes),
            Tile::Small => self.all::<L, 1>(lanes),
        }
    }
}

impl<F: IntegerFormat> IntegerRow<'_, F> {
    /// `C` columns at a time.
    #[inline(always)]
    fn all<L: Lanes, const C: usize>(self, lanes: L) {
        let (columns, rest) = self.columns.as_chunks::<C>();
        let (out, out_rest) = self.out.as_chunks_mut::<C>();
        for (out, columns) in out.iter_mut().zip(columns) {
            *out = row_dots::<L, F, C>(lanes, self.row, columns);
        }
        for (out, columns) in out_rest.iter_mut().zip(rest.as_chunks::<1>().0) {
            [*out] = row_dots::<L, F, 1>(lanes, self.row, columns);
        }
    }
}

/// Levels of a unit times their scales.
#[inline(always)]
pub(super) fn scaled<L: Lanes, F: IntegerFormat>(
    lanes: L,
    levels: L::Words,
    pairs: &[i32; WIDTH],
    unit: usize,
) -> L::Words {
    match F::HALF_SCALES {
        true => lanes.scale_halves(levels, pairs, unit),
        false => lanes.scale_words(levels, pairs[unit]),
    }
}

/// Adds the products of a unit and each column: of the columns' high digits, and of their low ones.
#[inline(always)]
fn add_unit<L: Lanes, const C: usize>(
    lanes: L,
    w: L::Words,
    x: [&Digits; C],
    unit: usize,
    dots: &mut [[L::Ints; 2]; C],
) {
    for c in 0..C {
        dots[c][0] = lanes.dot_words(w, lanes.words(&x[c].high[unit]), dots[c][0]);
        dots[c][1] = lanes.dot_words(w, lanes.words(&x[c].low[unit]), dots[c][1]);
    }
}

/// The sums of each column are independent, so that their number does not change a bit.
#[inline(always)]
fn row_dots<L: Lanes, F: IntegerFormat, const C: usize>(
    lanes: L,
    row: &[u8],
    columns: &[&[Digits]; C],
) -> [f32; C] {
    let book = F::book();
    let (mut sums, mut minima) = ([lanes.splat(0.0); C], [lanes.splat(0.0); C]);
    for (index, block) in row.chunks_exact(F::BYTES).enumerate() {
        lanes.prefetch_after(block);
        let scales = F::scales(lanes, block);
        // Kept in memory, from where broadcasting costs no more than a load; the compiler would shuffle registers instead.
        let pairs = black_box(&scales.pairs);
        let x: [&Digits; C] = columns.map(|column| &column[index]);
        // At most 2¹² · 2¹⁵ · 16, which fits.
        let mut dots = [[lanes.zero_ints(); 2]; C];
        // Where there are registers, a column alone has two chains of sums per digit: a chain has the latency of eight instructions.
        let two_chains = C == 1 && matches!(L::TILE, Tile::Large) && F::UNROLLED;
        let mut odd = dots;
        if F::UNROLLED {
            for_units!(UNIT => {
                let w = scaled::<L, F>(lanes, F::levels(lanes, book, block, UNIT), pairs, UNIT);
                let dots = if two_chains && UNIT % 2 == 1 { &mut odd } else { &mut dots };
                add_unit(lanes, w, x, UNIT, dots);
            });
        } else {
            for unit in 0..8 {
                let w = scaled::<L, F>(lanes, F::levels(lanes, book, block, unit), pairs, unit);
                add_unit(lanes, w, x, unit, &mut dots);
            }
        }
        if two_chains {
            for (dot, odd) in dots[0].iter_mut().zip(odd[0]) {
                *dot = lanes.add_ints(*dot, odd);
            }
        }
        for c in 0..C {
            let (high, low) = (lanes.floats(dots[c][0]), lanes.floats(dots[c][1]));
            let dot = lanes.fma(lanes.splat(65536.0), high, low);
            sums[c] = lanes.fma(lanes.splat(scales.factor * x[c].step), dot, sums[c]);
        }
        if F::MINIMA {
            let all = lanes.mul(lanes.unsigned(&scales.minima), lanes.splat(scales.minima_factor));
            for c in 0..C {
                minima[c] = lanes.fma(all, lanes.load(&x[c].sums), minima[c]);
            }
        }
    }
    let mut out = [0.0; C];
    for c in 0..C {
        out[c] = lanes.sum(lanes.sub(sums[c], minima[c]));
    }
    out
}
