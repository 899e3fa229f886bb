//! Dot products in bytes, for AVX2 with or without AVX-VNNI, and for NEON with its dot products. An activation is three digits of 8 bits: the
//! largest of its block has 22 or 23 bits. With AVX2, `vpmaddubsw` multiplies 32 unsigned levels with signed digits, where kernels in 16-bit words
//! need two instructions; `vpmaddwd` or `vpdpwssd` then applies the scales. NEON's `sdot` adds up four products in 32 bits.

use super::{
    Kernel,
    formats::at,
    gemv::{Column, for_units, prefetch_distance},
    integer::{byte_digits, exponent, next_blocks, power},
    integer_format::{ByteLevels, IntegerFormat},
    lanes::Lanes,
    vector::halves,
};

/// Vector operations on bytes, of levels where kernels in bytes take fewer instructions.
pub(crate) trait ByteLanes: Copy {
    /// 32 unsigned bytes.
    type Levels: Copy;
    /// What the products of a unit are multiplied with.
    type Scales: Copy;
    /// The scales of all units.
    type UnitScales: Copy;
    /// The scales of the halves of all units.
    type HalfScales: Copy;
    /// Sums of a block's products.
    type Sums: Copy;
    /// Sums of a row's products.
    type Floats: Copy;
    /// The low or the high nibbles.
    fn nibbles(self, bytes: &[u8; 32], high: bool) -> Self::Levels;
    /// Adds some bits of bytes, as [`Lanes::shift`] takes them.
    fn add_bits(self, levels: Self::Levels, bytes: &[u8; 32], by: i32, mask: u8) -> Self::Levels;
    /// Zeros.
    fn zero_sums(self) -> Self::Sums;
    /// Zeros.
    fn zero_floats(self) -> Self::Floats;
    /// The scales of all units, pairs of equal words.
    fn unit_scales(self, pairs: &[i32; 8]) -> Self::UnitScales;
    /// The scale of a unit.
    fn unit_scale(self, scales: &Self::UnitScales, unit: usize) -> Self::Scales;
    /// The signed scales of the halves of all units.
    fn half_scales(self, scales: &[u8; 16]) -> Self::HalfScales;
    /// The scales of a unit's halves.
    fn scales_of(self, scales: Self::HalfScales, unit: usize) -> Self::Scales;
    /// Adds the products of levels and activations, times the scales of the halves.
    fn add_products(
        self,
        levels: Self::Levels,
        digits: [&[i8; 32]; 3],
        scales: Self::Scales,
        sums: Self::Sums,
    ) -> Self::Sums;
    /// Adds the sums of a block, times a factor.
    fn add_block(self, sums: Self::Sums, factor: f32, total: Self::Floats) -> Self::Floats;
    /// Subtracts `minima · factor · x`.
    fn subtract_minima(
        self,
        minima: &[u8; 8],
        factor: f32,
        x: &[f32; 8],
        total: Self::Floats,
    ) -> Self::Floats;
    /// Subtracts `scales · factor · x`, where `x` are the sums of half units: the zero point of signed levels.
    fn subtract_offsets(
        self,
        scales: &[u8; 16],
        factor: f32,
        x: &[f32; 16],
        total: Self::Floats,
    ) -> Self::Floats;
    /// The sum of all lanes.
    fn sum(self, total: Self::Floats) -> f32;
}

/// For feature levels without kernels in bytes: it has no values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoBytes {}

impl ByteLanes for NoBytes {
    type Levels = ();
    type Scales = ();
    type UnitScales = ();
    type HalfScales = ();
    type Sums = ();
    type Floats = ();

    fn nibbles(self, _: &[u8; 32], _: bool) {
        match self {}
    }

    fn add_bits(self, (): (), _: &[u8; 32], _: i32, _: u8) {
        match self {}
    }

    fn zero_sums(self) {
        match self {}
    }

    fn zero_floats(self) {
        match self {}
    }

    fn unit_scales(self, _: &[i32; 8]) {
        match self {}
    }

    fn unit_scale(self, (): &(), _: usize) {
        match self {}
    }

    fn half_scales(self, _: &[u8; 16]) {
        match self {}
    }

    fn scales_of(self, (): (), _: usize) {
        match self {}
    }

    fn add_products(self, (): (), _: [&[i8; 32]; 3], (): (), (): ()) {
        match self {}
    }

    fn add_block(self, (): (), _: f32, (): ()) {
        match self {}
    }

    fn subtract_minima(self, _: &[u8; 8], _: f32, _: &[f32; 8], (): ()) {
        match self {}
    }

    fn subtract_offsets(self, _: &[u8; 16], _: f32, _: &[f32; 16], (): ()) {
        match self {}
    }

    fn sum(self, (): ()) -> f32 {
        match self {}
    }
}

/// The activations of a block: `x = (2¹⁶ · digits[2] + 2⁸ · digits[1] + digits[0]) · step`, within half a step.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct ByteDigits {
    pub(super) digits: [[[i8; 32]; 8]; 3],
    /// The sums of units: what minima are multiplied with.
    units: [f32; 8],
    /// The sums of their halves.
    pub(super) halves: [f32; 16],
    /// A power of two; NaN if an activation is infinite or NaN.
    pub(super) step: f32,
}

impl ByteDigits {
    /// The digits of a unit.
    #[inline(always)]
    pub(super) fn of(&self, unit: usize) -> [&[i8; 32]; 3] {
        self.digits.each_ref().map(|digits| &digits[unit])
    }
}

pub(super) struct SplitBytes<'a>(pub(super) &'a [f32; 256]);

impl Kernel for SplitBytes<'_> {
    type Output = ByteDigits;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> ByteDigits {
        let mut out = ByteDigits {
            digits: [[[0; 32]; 8]; 3],
            units: [0.0; 8],
            halves: [0.0; 16],
            step: f32::NAN,
        };
        // The largest magnitude becomes less than 2²³ - 2¹⁶, so that its highest digit is at most 127.
        let Some(exponent) = exponent(self.0, 1 << 17, 23) else { return out };
        out.step = power(-exponent);
        for (unit, x) in self.0.as_chunks::<32>().0.iter().enumerate() {
            let mut sums = [0; 2];
            for (half, x) in halves(lanes, x).into_iter().enumerate() {
                let fixed = lanes.integers(lanes.mul(x, lanes.splat(power(exponent))));
                // A digit at a time, which compilers turn into vectors.
                for (d, digits) in out.digits.iter_mut().enumerate() {
                    let digits = digits[unit][16 * half..].iter_mut();
                    digits.zip(fixed).for_each(|(digit, fixed)| *digit = byte_digits(fixed)[d]);
                }
                sums[half] = fixed.iter().sum();
                out.halves[2 * unit + half] = sums[half] as f32 * out.step;
            }
            out.units[unit] = (sums[0] + sums[1]) as f32 * out.step;
        }
        out
    }
}

/// The levels of a unit.
#[inline(always)]
fn levels<B: ByteLanes>(bytes: B, levels: ByteLevels, block: &[u8], unit: usize) -> B::Levels {
    match levels {
        ByteLevels::Four { nibbles } => {
            bytes.nibbles(at(block, nibbles + 32 * (unit / 2)), unit % 2 == 1)
        }
        ByteLevels::Five { nibbles, bits } => {
            let low = bytes.nibbles(at(block, nibbles + 32 * (unit / 2)), unit % 2 == 1);
            bytes.add_bits(low, at(block, bits), 4 - unit as i32, 16)
        }
        ByteLevels::Six { nibbles, bits, .. } => {
            let (half, unit) = (unit / 4, unit % 4);
            let low = bytes.nibbles(at(block, nibbles + 64 * half + 32 * (unit % 2)), unit >= 2);
            bytes.add_bits(low, at(block, bits + 32 * half), 4 - 2 * unit as i32, 48)
        }
    }
}

/// The dot products of rows and columns.
#[inline(always)]
pub(super) fn dots<L: Lanes, B: ByteLanes, F: IntegerFormat, const R: usize, const C: usize>(
    (lanes, bytes): (L, B),
    format: ByteLevels,
    rows: &[&[u8]; R],
    columns: &[Column<'_>; C],
) -> [[f32; C]; R] {
    let mut totals = [[bytes.zero_floats(); C]; R];
    let blocks = rows[0].len() / F::BYTES;
    let mut x: [&[ByteDigits]; C] = [&[]; C];
    for (x, column) in x.iter_mut().zip(columns) {
        *x = &column.fixed.bytes[..blocks];
    }
    let (mut rest, distance) = (*rows, prefetch_distance(rows));
    for index in 0..blocks {
        let (block, scales) = next_blocks::<L, F, R>(lanes, &mut rest, distance);
        let mut unit_scales = [bytes.unit_scales(&[0; 8]); R];
        let mut half_scales = [bytes.half_scales(&[0; 16]); R];
        for r in 0..R {
            match format {
                ByteLevels::Six { scales, .. } => {
                    half_scales[r] = bytes.half_scales(at(block[r], scales))
                }
                _ => unit_scales[r] = bytes.unit_scales(at(scales[r].pairs.as_ref(), 0)),
            }
        }
        // From memory, broadcasting costs no more than a load; the compiler would shuffle registers instead.
        let unit_scales = match format {
            ByteLevels::Six { .. } => &unit_scales,
            _ => lanes.in_memory(&unit_scales),
        };
        let mut sums = [[bytes.zero_sums(); C]; R];
        for_units!(UNIT => {
            for r in 0..R {
                let w = levels(bytes, format, block[r], UNIT);
                let scales = match format {
                    ByteLevels::Six { .. } => bytes.scales_of(half_scales[r], UNIT),
                    _ => bytes.unit_scale(&unit_scales[r], UNIT),
                };
                for c in 0..C {
                    sums[r][c] = bytes.add_products(w, x[c][index].of(UNIT), scales, sums[r][c]);
                }
            }
        });
        for r in 0..R {
            for c in 0..C {
                let x = &x[c][index];
                let total = bytes.add_block(sums[r][c], scales[r].factor * x.step, totals[r][c]);
                totals[r][c] = if let ByteLevels::Six { scales: from, .. } = format {
                    let factor = 32.0 * scales[r].factor;
                    bytes.subtract_offsets(at(block[r], from), factor, &x.halves, total)
                } else {
                    let (minima, factor) = (at(&scales[r].minima, 0), scales[r].minima_factor);
                    bytes.subtract_minima(minima, factor, &x.units, total)
                };
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
