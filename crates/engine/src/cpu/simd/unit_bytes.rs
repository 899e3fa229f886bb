//! Dot products in bytes of formats with blocks of 32 signed levels and a scale, for levels that multiply signed bytes and add up four products in
//! 32 bits. Activations are three digits of 8 bits for every 256, as in `bytes.rs`.

use super::{
    Kernel,
    bytes::{ByteDigits, ByteLanes, NoBytes, SplitBytes},
    formats::{Format, at},
    gemv::{Column, STEP_UNITS, for_units, prefetch_distance},
    lanes::Lanes,
};

/// Activations that share a step.
const BLOCK: usize = 32 * STEP_UNITS;

/// Vector operations on signed bytes, of levels where they take fewer instructions than floats.
pub(crate) trait UnitBytes<B>: ByteLanes {
    /// Adds the products of levels and activations, times a scale.
    fn add_unit(
        self,
        levels: B,
        digits: [&[i8; 32]; 3],
        scale: f32,
        sums: Self::Sums,
    ) -> Self::Sums;
}

impl<B> UnitBytes<B> for NoBytes {
    fn add_unit(self, _: B, _: [&[i8; 32]; 3], _: f32, (): ()) {
        match self {}
    }
}

/// Prepares a column for levels with these kernels. Zeros complete the last block.
pub(super) struct PrepareUnits<'a>(pub(super) &'a [f32]);

impl Kernel for PrepareUnits<'_> {
    type Output = Vec<ByteDigits>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Self::Output {
        let mut digits = Vec::new();
        if lanes.unit_bytes().is_some() {
            digits.reserve_exact(self.0.len().div_ceil(BLOCK));
            for x in self.0.chunks(BLOCK) {
                let mut block = [0.0; BLOCK];
                block[..x.len()].copy_from_slice(x);
                digits.push(SplitBytes(&block).run(lanes));
            }
        }
        digits
    }
}

/// The dot products of rows and columns.
#[inline(always)]
pub(super) fn dots<L: Lanes, F: Format, const R: usize, const C: usize>(
    lanes: L,
    bytes: L::UnitBytes,
    rows: &[&[u8]; R],
    columns: &[Column<'_>; C],
) -> [[f32; C]; R] {
    let mut totals = [[bytes.zero_floats(); C]; R];
    let units = rows[0].len() / F::BYTES;
    let columns = columns.each_ref().map(|column| &column.units[..units.div_ceil(STEP_UNITS)]);
    let (distance, mut rest) = (prefetch_distance(rows), *rows);
    for index in 0..units / STEP_UNITS {
        let (mut groups, mut scales) = ([&[][..]; R], [[1.0; STEP_UNITS]; R]);
        for r in 0..R {
            (groups[r], rest[r]) = rest[r].split_at(STEP_UNITS * F::BYTES);
            lanes.prefetch_after(groups[r], distance);
            scales[r] = lanes.strided_halves(groups[r], F::BYTES);
        }
        let x = columns.map(|column| &column[index]);
        let mut sums = [[bytes.zero_sums(); C]; R];
        for_units!(UNIT => {
            for r in 0..R {
                let block = &groups[r][UNIT * F::BYTES..][..F::BYTES];
                let Some(levels) = F::levels(lanes, block) else { continue };
                for c in 0..C {
                    sums[r][c] = bytes.add_unit(levels, x[c].of(UNIT), scales[r][UNIT], sums[r][c]);
                }
            }
        });
        for r in 0..R {
            for c in 0..C {
                totals[r][c] = bytes.add_block(sums[r][c], x[c].step, totals[r][c]);
            }
        }
    }
    for unit in units / STEP_UNITS * STEP_UNITS..units {
        for r in 0..R {
            let (block, after) = rest[r].split_at(F::BYTES);
            rest[r] = after;
            let Some(levels) = F::levels(lanes, block) else { continue };
            let scale = lanes.half(*at(block, 0));
            for c in 0..C {
                let x = &columns[c][unit / STEP_UNITS];
                let digits = x.of(unit % STEP_UNITS);
                let sums = bytes.add_unit(levels, digits, scale, bytes.zero_sums());
                totals[r][c] = bytes.add_block(sums, x.step, totals[r][c]);
            }
        }
    }
    let mut out = [[0.0; C]; R];
    for r in 0..R {
        for c in 0..C {
            out[r][c] = bytes.sum(totals[r][c]);
        }
    }
    out
}
