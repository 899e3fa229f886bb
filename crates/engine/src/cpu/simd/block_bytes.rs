//! Dot products of K-quants in bytes, a block at a time, for levels with vectors of 64 bytes and no dot products of integers. Activations are three
//! digits of 8 bits as in `bytes.rs`, in the order of a block's nibbles. Products with levels that share a scale meet in the same lanes, so that
//! they are added up in 16 bits before they are scaled.

use super::{
    Kernel,
    bytes::{NoBytes, SplitBytes},
    formats::at,
    gemv::{Column, prefetch_distance},
    integer::next_blocks,
    integer_format::{ByteLevels, IntegerFormat},
    lanes::{Lanes, WIDTH},
};

/// Vectors of 64 bytes: of low nibbles, of as many others, then of their high nibbles. Byte `16 · j + 8 · q + b` of vector `k` is that of nibble
/// `64 · q + 16 · j + 8 · k + b` of a block: eight weights of each of eight half units.
pub(super) const VECTORS: usize = 4;

/// Vector operations on blocks, of levels where they take fewer instructions than products of words.
pub(crate) trait BlockBytes<F>: Copy {
    /// The levels of a block.
    type Levels: Copy;
    /// The scales of low and of high nibbles.
    type Scales: Copy;
    /// Levels of four bits.
    fn four_bits(self, nibbles: &[u8; 128]) -> Self::Levels;
    /// Adds a fifth bit.
    fn fifth_bits(self, levels: Self::Levels, bits: &[u8; 32]) -> Self::Levels;
    /// Adds a fifth and a sixth bit, with units in the order of Q6_K.
    fn sixth_bits(self, levels: Self::Levels, bits: &[u8; 64]) -> Self::Levels;
    /// The scales of all units, pairs of equal words.
    fn unit_scales(self, pairs: &[i32; 8]) -> Self::Scales;
    /// The signed scales of all half units of Q6_K.
    fn half_scales(self, scales: &[u8; 16]) -> Self::Scales;
    /// The scaled products of a block with its activations, in steps.
    fn dot(self, levels: Self::Levels, scales: Self::Scales, digits: &Digits) -> F;
}

impl<F> BlockBytes<F> for NoBytes {
    type Levels = ();
    type Scales = ();

    fn four_bits(self, _: &[u8; 128]) {
        match self {}
    }

    fn fifth_bits(self, (): (), _: &[u8; 32]) {
        match self {}
    }

    fn sixth_bits(self, (): (), _: &[u8; 64]) {
        match self {}
    }

    fn unit_scales(self, _: &[i32; 8]) {
        match self {}
    }

    fn half_scales(self, _: &[u8; 16]) {
        match self {}
    }

    fn dot(self, (): (), (): (), _: &Digits) -> F {
        match self {}
    }
}

/// The digits of a block's activations, the lowest first.
pub(crate) type Digits = [[[i8; 64]; VECTORS]; 3];

/// The activations of a block: `x = (2¹⁶ · digits[2] + 2⁸ · digits[1] + digits[0]) · step`, within half a step.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct BlockDigits {
    digits: Digits,
    /// What minima are multiplied with, or the scales of levels with a zero point: the negative sums of half units, times the zero point.
    offsets: [f32; WIDTH],
    /// A power of two; NaN if an activation is infinite or NaN.
    step: f32,
}

/// Splits the activations of a block.
pub(super) struct SplitBlock<'a>(pub(super) &'a [f32; 256], pub(super) ByteLevels);

impl Kernel for SplitBlock<'_> {
    type Output = BlockDigits;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> BlockDigits {
        let by_unit = SplitBytes(self.0).run(lanes);
        let mut out = BlockDigits {
            digits: [[[0; 64]; VECTORS]; 3],
            offsets: [0.0; WIDTH],
            step: by_unit.step,
        };
        let six = matches!(self.1, ByteLevels::Six { .. });
        for (digits, from) in out.digits.iter_mut().zip(&by_unit.digits) {
            for (vector, digits) in digits.iter_mut().enumerate() {
                let (high, k) = (vector / 2, vector % 2);
                for (i, eight) in digits.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                    let nibble = 64 * (i % 2) + 16 * (i / 2) + 8 * k;
                    let unit = match six {
                        true => nibble / 64 * 4 + nibble % 64 / 32 + 2 * high,
                        false => nibble / 32 * 2 + high,
                    };
                    *eight = *at(&from[unit], nibble % 32);
                }
            }
        }
        for (i, offset) in out.offsets.iter_mut().enumerate() {
            *offset = match six {
                true => -32.0 * by_unit.halves[i],
                // Minima twice: of the first halves of units, then of the second ones.
                false => -by_unit.halves[2 * (i % 8) + i / 8],
            };
        }
        out
    }
}

/// The dot products of rows and columns.
#[inline(always)]
pub(super) fn dots<L: Lanes, F: IntegerFormat, const R: usize, const C: usize>(
    (lanes, bytes): (L, L::BlockBytes),
    format: ByteLevels,
    rows: &[&[u8]; R],
    columns: &[Column<'_>; C],
) -> [[f32; C]; R] {
    let mut totals = [[lanes.splat(0.0); C]; R];
    let blocks = rows[0].len() / F::BYTES;
    let columns = columns.each_ref().map(|column| &column.fixed.blocks[..blocks]);
    let (mut rest, distance) = (*rows, prefetch_distance(rows));
    for index in 0..blocks {
        let (block, scales) = next_blocks::<L, F, R>(lanes, &mut rest, distance);
        let x = columns.map(|column| lanes.in_memory(&column[index]));
        for r in 0..R {
            let (block, scales) = (block[r], &scales[r]);
            let levels = match format {
                ByteLevels::Four { nibbles } => bytes.four_bits(at(block, nibbles)),
                ByteLevels::Five { nibbles, bits } => {
                    bytes.fifth_bits(bytes.four_bits(at(block, nibbles)), at(block, bits))
                }
                ByteLevels::Six { nibbles, bits, .. } => {
                    bytes.sixth_bits(bytes.four_bits(at(block, nibbles)), at(block, bits))
                }
            };
            let (by, subtracted, factor) = match format {
                ByteLevels::Six { scales: from, .. } => {
                    let from = at(block, from);
                    (bytes.half_scales(from), lanes.signed(from), scales.factor)
                }
                _ => {
                    let by = bytes.unit_scales(at(scales.pairs.as_ref(), 0));
                    (by, lanes.unsigned(&scales.minima), scales.minima_factor)
                }
            };
            let subtracted = lanes.mul(subtracted, lanes.splat(factor));
            for c in 0..C {
                let dot = bytes.dot(levels, by, &x[c].digits);
                let factor = lanes.splat(scales.factor * x[c].step);
                let total = lanes.fma(factor, dot, totals[r][c]);
                totals[r][c] = lanes.fma(subtracted, lanes.load(&x[c].offsets), total);
            }
        }
    }
    let mut out = [[0.0; C]; R];
    for r in 0..R {
        for c in 0..C {
            out[r][c] = lanes.sum(totals[r][c]);
        }
    }
    out
}
