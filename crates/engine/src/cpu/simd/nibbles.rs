//! Dot products of rows of Q4_0 without unpacking its nibbles. Four of a block's bytes are a word of eight nibbles, and `word & 15 << 4k` is
//! level `k` times 16ᵏ: a mask and a conversion for a vector of levels, where bytes would have to be unpacked, shuffled and widened. Activations
//! are divided by 16ᵏ beforehand, which is exact for normal numbers. The zero point, 8, becomes `-8 · Σx` of a lane, from which its sum starts.

use super::{
    Kernel,
    formats::{Format, Q4_0},
    gemv::{Column, Dots, for_units, prefetch_distance},
    lanes::{Lanes, WIDTH},
    nibble_bytes::{self, NibbleDigits, SplitNibbles},
};

/// Blocks of a group: each fills four of a vector's lanes.
const BLOCKS: usize = 4;
/// Weights of a group.
pub(super) const GROUP: usize = 32 * BLOCKS;
/// Bytes of a group.
pub(super) const GROUP_BYTES: usize = BLOCKS * Q4_0::BYTES;

/// 16⁻ᵏ for the nibbles k = 0 to 3 of a word; nibbles 4 to 7 are shifted down before, and use the same.
const FACTORS: [f32; 4] = [1.0, 1.0 / 16.0, 1.0 / 256.0, 1.0 / 4096.0];

/// The activations of a group of blocks.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct ShiftedActivations {
    /// Those of nibbles `k` of the lanes' words, divided by 16ᵏ (of 4 to 7, by 16ᵏ⁻⁴).
    x: [[f32; WIDTH]; 8],
    /// The sums of a lane's activations, times -8.
    offsets: [f32; WIDTH],
}

/// A column in the form that the level's kernel needs.
#[derive(Debug, Default)]
pub(super) struct NibbleColumn {
    shifted: Vec<ShiftedActivations>,
    pub(super) digits: Vec<NibbleDigits>,
}

impl NibbleColumn {
    /// Whether it was prepared.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.shifted.is_empty() && self.digits.is_empty()
    }
}

/// Prepares a column, of a multiple of [`GROUP`] activations.
pub(super) struct PrepareNibbles<'a>(pub(super) &'a [f32]);

impl Kernel for PrepareNibbles<'_> {
    type Output = NibbleColumn;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Self::Output {
        let mut column = NibbleColumn::default();
        if lanes.nibble_bytes().is_some() {
            column.digits.reserve_exact(self.0.len() / GROUP);
            self.0
                .as_chunks()
                .0
                .iter()
                .for_each(|x| column.digits.push(SplitNibbles(x).run(lanes)));
            return column;
        }
        let group = |x: &[f32; GROUP]| {
            let mut out = ShiftedActivations { x: [[0.0; WIDTH]; 8], offsets: [0.0; WIDTH] };
            for (block, x) in x.as_chunks::<32>().0.iter().enumerate() {
                let mut sums = [0.0; 4];
                for k in 0..8 {
                    for (lane, sum) in sums.iter_mut().enumerate() {
                        // Byte `i` of a block has weights `i` and `i + 16`.
                        let x = x[4 * lane + k / 2 + 16 * (k % 2)];
                        *sum -= 8.0 * x;
                        out.x[k][4 * block + lane] = x * FACTORS[k % 4];
                    }
                }
                out.offsets[4 * block..][..4].copy_from_slice(&sums);
            }
            out
        };
        column.shifted = self.0.as_chunks().0.iter().map(group).collect();
        column
    }
}

/// Dot products of Q4_0.
#[derive(Debug)]
pub(super) struct NibbleDots;

impl Dots for NibbleDots {
    const SEVERAL_ROWS: bool = true;

    #[inline(always)]
    fn dots<L: Lanes, const R: usize, const C: usize>(
        lanes: L,
        rows: &[&[u8]; R],
        columns: &[Column<'_>; C],
    ) -> [[f32; C]; R] {
        if let Some(bytes) = lanes.nibble_bytes() {
            return nibble_bytes::dots(lanes, bytes, rows, columns);
        }
        let mut sums = [[lanes.splat(0.0); C]; R];
        let (groups, distance) = (rows[0].len() / GROUP_BYTES, prefetch_distance(rows));
        // Of equal lengths, which need no checks in the loop.
        let rows = rows.each_ref().map(|row| &row.as_chunks::<GROUP_BYTES>().0[..groups]);
        let columns = columns.each_ref().map(|column| &column.nibbles.shifted[..groups]);
        for index in 0..groups {
            let mut words = [lanes.zero_ints(); R];
            for r in 0..R {
                // One prefetch: 72 bytes are little more than a line.
                lanes.prefetch_after(&rows[r][index][..64], distance);
                words[r] = lanes.ints_of_four_blocks(&rows[r][index]);
            }
            let x = columns.map(|column| &column[index]);
            // Two chains of sums.
            let mut dots = x.map(|x| [[lanes.load(&x.offsets); 2]; R]);
            for_units!(NIBBLE => {
                for r in 0..R {
                    if NIBBLE == 4 {
                        words[r] = lanes.high_words(words[r]);
                    }
                    let w = lanes.floats(lanes.masked(words[r], 15 << (4 * (NIBBLE % 4))));
                    for c in 0..C {
                        let (x, dot) =
                            (lanes.load(&x[c].x[NIBBLE]), &mut dots[c][r][NIBBLE % 2]);
                        *dot = match NIBBLE {
                            1 => lanes.mul(w, x),
                            _ => lanes.fma(w, x, *dot),
                        };
                    }
                }
            });
            for r in 0..R {
                let scales = lanes.halves_of_four_blocks(&rows[r][index]);
                for c in 0..C {
                    let dot = lanes.add(dots[c][r][0], dots[c][r][1]);
                    sums[r][c] = lanes.fma(scales, dot, sums[r][c]);
                }
            }
        }
        let mut out = [[0.0; C]; R];
        for r in 0..R {
            for c in 0..C {
                out[r][c] = lanes.sum(sums[r][c]);
            }
        }
        out
    }
}
