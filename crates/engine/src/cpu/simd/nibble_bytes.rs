//! Dot products of Q4_0 in bytes, for levels that multiply bytes and add up four products in 32 bits. Low and high nibbles of four blocks are two
//! vectors of 64 bytes; an activation is three digits of 8 bits, as in `bytes.rs`. A lane has four bytes of a block, so that its sum fits 32 bits
//! with all digits: it is converted to a float once, and starts from the zero point, 8, times the lane's activations.

use super::{
    Kernel,
    bytes::NoBytes,
    gemv::{Column, prefetch_distance},
    integer::{byte_digits, exponent, power},
    lanes::{Lanes, WIDTH},
    nibbles::{GROUP, GROUP_BYTES},
};

/// Vector operations on 64 bytes, of levels where they take fewer instructions than floats.
pub(crate) trait NibbleBytes<I: Copy>: Copy {
    /// The low and the high nibbles of bytes.
    fn nibbles(self, bytes: I) -> [I; 2];
    /// Adds the sums of four products of unsigned levels and digits to every lane, of both vectors of levels.
    fn add_dots(self, levels: [I; 2], digits: &[[i8; 64]; 2], sums: I) -> I;
    /// `256 · high + low`
    fn join(self, high: I, low: I) -> I;
    /// `2¹⁶ · sums[2] + 2⁸ · sums[1] + sums[0]`, after [`NibbleBytes::add_dots`] of each digit.
    #[inline(always)]
    fn add_digits(self, levels: [I; 2], digits: &[[[i8; 64]; 2]; 3], mut sums: [I; 3]) -> I {
        for (sum, digits) in sums.iter_mut().zip(digits) {
            *sum = self.add_dots(levels, digits, *sum);
        }
        self.join(self.join(sums[2], sums[1]), sums[0])
    }
}

impl<I: Copy> NibbleBytes<I> for NoBytes {
    fn nibbles(self, _: I) -> [I; 2] {
        match self {}
    }

    fn add_dots(self, _: [I; 2], _: &[[i8; 64]; 2], _: I) -> I {
        match self {}
    }

    fn join(self, _: I, _: I) -> I {
        match self {}
    }
}

/// The activations of a group of blocks: `x = (2¹⁶ · digits[2] + 2⁸ · digits[1] + digits[0]) · step`, within half a step.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct NibbleDigits {
    /// Of low and of high nibbles, in the order of the blocks' bytes.
    digits: [[[i8; 64]; 2]; 3],
    /// The sums of a lane's activations in steps, times -8.
    offsets: [i32; WIDTH],
    /// A power of two; NaN if an activation is infinite or NaN.
    step: f32,
}

/// Splits the activations of a group.
pub(super) struct SplitNibbles<'a>(pub(super) &'a [f32; GROUP]);

impl Kernel for SplitNibbles<'_> {
    type Output = NibbleDigits;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> NibbleDigits {
        let mut out =
            NibbleDigits { digits: [[[0; 64]; 2]; 3], offsets: [0; WIDTH], step: f32::NAN };
        // As in `bytes.rs`: the highest digit is at most 127.
        let Some(exponent) = exponent(self.0, 1 << 17, 23) else { return out };
        out.step = power(-exponent);
        let factor = lanes.splat(power(exponent));
        for (i, x) in self.0.as_chunks::<WIDTH>().0.iter().enumerate() {
            // The first half of a block has its low nibbles.
            let (block, half) = (i / 2, i % 2);
            let fixed = lanes.integers(lanes.mul(lanes.load(x), factor));
            for (j, fixed) in fixed.iter().enumerate() {
                for (digits, digit) in out.digits.iter_mut().zip(byte_digits(*fixed)) {
                    digits[half][WIDTH * block + j] = digit;
                }
            }
            let fours = fixed.as_chunks::<4>().0;
            for (offset, four) in out.offsets[4 * block..].iter_mut().zip(fours) {
                *offset -= 8 * four.iter().sum::<i32>();
            }
        }
        out
    }
}

/// The dot products of rows and columns.
#[inline(always)]
pub(super) fn dots<L: Lanes, const R: usize, const C: usize>(
    lanes: L,
    bytes: L::NibbleBytes,
    rows: &[&[u8]; R],
    columns: &[Column<'_>; C],
) -> [[f32; C]; R] {
    let mut totals = [[lanes.splat(0.0); C]; R];
    let (groups, distance) = (rows[0].len() / GROUP_BYTES, prefetch_distance(rows));
    // Of equal lengths, which need no checks in the loop.
    let rows = rows.each_ref().map(|row| &row.as_chunks::<GROUP_BYTES>().0[..groups]);
    let columns = columns.each_ref().map(|column| &column.nibbles.digits[..groups]);
    for index in 0..groups {
        let x = columns.map(|column| lanes.in_memory(&column[index]));
        for r in 0..R {
            // One prefetch: 72 bytes are little more than a line.
            lanes.prefetch_after(&rows[r][index][..64], distance);
            let levels = bytes.nibbles(lanes.ints_of_four_blocks(&rows[r][index]));
            let scales = lanes.halves_of_four_blocks(&rows[r][index]);
            for c in 0..C {
                let zero = lanes.zero_ints();
                let sums = [lanes.ints(&x[c].offsets), zero, zero];
                // At most 8 · 15 · 2²³.
                let dot = bytes.add_digits(levels, &x[c].digits, sums);
                let scales = lanes.mul(scales, lanes.splat(x[c].step));
                totals[r][c] = lanes.fma(scales, lanes.floats(dot), totals[r][c]);
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
