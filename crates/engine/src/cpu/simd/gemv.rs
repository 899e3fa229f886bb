//! Dot products of a weight's row with a few columns: which kernel multiplies a format, and how many rows and columns at a time. Formats with
//! blocks of 256 weights are multiplied in integers (`integer.rs`), Q4_0 in `nibbles.rs`; this file has the kernel of the others, with blocks of 32
//! or none: f32 arithmetic on the levels, scales applied per unit (in bytes on some levels, see `unit_bytes.rs`).

use std::marker::PhantomData;

use rullama_gguf::{DType, quant::dequantize};

use super::{
    Kernel,
    bytes::ByteDigits,
    formats::{Format, at, with_format},
    integer::{Fixed, IntegerDots, Prepare},
    integer_format::{IntegerFormat, with_integer_format},
    lanes::{Lanes, Tile},
    nibbles::{self, NibbleColumn, NibbleDots, PrepareNibbles},
    run,
    unit_bytes::{self, PrepareUnits},
    vector::{dot, halves},
};

/// Units that are multiplied in one step.
pub(super) const STEP_UNITS: usize = 8;

/// A column in the form that a weight's format needs.
#[derive(Debug)]
pub(crate) struct Column<'a> {
    x: &'a [f32],
    /// For formats that are multiplied in integers.
    pub(super) fixed: Fixed,
    /// For Q4_0.
    pub(super) nibbles: NibbleColumn,
    /// For formats with units and scales, on levels that multiply them in bytes.
    pub(super) units: Vec<ByteDigits>,
}

impl<'a> Column<'a> {
    /// Prepares a column for weights of a format.
    pub(crate) fn new(dtype: DType, x: &'a [f32]) -> Self {
        let fixed = with_integer_format!(dtype, F => {
            run(Prepare { x, byte_levels: F::BYTE_LEVELS })
        }, Fixed::default());
        let has_groups = has_groups(dtype, x.len());
        let nibbles = if has_groups { run(PrepareNibbles(x)) } else { NibbleColumn::default() };
        let units = with_format!(dtype, F => {
            if F::SCALED && !has_groups { run(PrepareUnits(x)) } else { Vec::new() }
        }, Vec::new());
        Self { x, fixed, nibbles, units }
    }
}

/// `out[r][c] = rows[r] · columns[c]`, the same bits for any number of rows and columns. `decoded` is scratch memory for formats without a
/// kernel.
pub(crate) fn gemv(
    dtype: DType,
    rows: &[&[u8]],
    columns: &[Column<'_>],
    decoded: &mut Vec<f32>,
    out: &mut [f32],
) {
    let Some(first) = columns.first() else { return };
    if with_kernel(dtype, rows, columns, out) {
        return;
    }
    decoded.resize(first.x.len(), 0.0);
    for (row, out) in rows.iter().zip(out.chunks_mut(columns.len())) {
        dequantize(dtype, row, decoded).expect("the plan checked type and length");
        for (out, column) in out.iter_mut().zip(columns) {
            *out = dot(decoded, column.x);
        }
    }
}

/// Whether rows are multiplied by [`NibbleDots`].
fn has_groups(dtype: DType, width: usize) -> bool {
    dtype == DType::Q4_0 && width.is_multiple_of(nibbles::GROUP)
}

/// [`gemv`] by the kernel of a format; false if it has none for this width.
fn with_kernel(dtype: DType, rows: &[&[u8]], columns: &[Column<'_>], out: &mut [f32]) -> bool {
    let width = columns.first().map_or(0, |column| column.x.len());
    with_integer_format!(dtype, F => {
        run(Rows::<IntegerDots<F>> { rows, columns, out, dots: PhantomData });
        return true;
    }, {});
    if has_groups(dtype, width) {
        run(Rows::<NibbleDots> { rows, columns, out, dots: PhantomData });
        return true;
    }
    with_format!(dtype, F => {
        if width.is_multiple_of(32) {
            run(Rows::<UnitDots<F>> { rows, columns, out, dots: PhantomData });
            return true;
        }
    }, {});
    false
}

/// How far ahead weights are prefetched: to the same place in the rows that come next. Hardware prefetchers stop at pages of 4 KiB, of which
/// a row has only one or two.
#[inline(always)]
pub(super) fn prefetch_distance(rows: &[&[u8]]) -> usize {
    /// What is read while memory answers.
    const LEAST: usize = 2048;
    let bytes = (rows.len() * rows[0].len()).max(1);
    bytes * LEAST.div_ceil(bytes)
}

/// How rows of a format are multiplied with columns.
pub(super) trait Dots {
    /// Whether the kernel for several rows is compiled, which takes long: for K-quants and formats with units of 32.
    const SEVERAL_ROWS: bool;
    /// Whether the sums of two rows and a column fit into sixteen registers.
    #[inline(always)]
    fn two_rows<L: Lanes>(_: L) -> bool {
        false
    }
    /// The dot products of rows and columns. The sums of each are independent, so that their number does not change a bit.
    fn dots<L: Lanes, const R: usize, const C: usize>(
        lanes: L,
        rows: &[&[u8]; R],
        columns: &[Column<'_>; C],
    ) -> [[f32; C]; R];
}

/// `out[r][c] = rows[r] · columns[c]`
#[derive(Debug)]
pub(super) struct Rows<'a, D> {
    pub(super) rows: &'a [&'a [u8]],
    pub(super) columns: &'a [Column<'a>],
    pub(super) out: &'a mut [f32],
    pub(super) dots: PhantomData<D>,
}

impl<D: Dots> Kernel for Rows<'_, D> {
    type Output = ();

    /// Several rows share what is loaded of a column alone, and several columns what is decoded of a row.
    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        let one_column = self.columns.len() == 1;
        match L::TILE {
            Tile::Large if one_column && D::SEVERAL_ROWS => self.all::<L, 4, 1>(lanes),
            Tile::Large => self.all::<L, 1, 4>(lanes),
            Tile::Medium if one_column && D::two_rows(lanes) => self.all::<L, 2, 1>(lanes),
            Tile::Medium => self.all::<L, 1, 2>(lanes),
            Tile::Small => self.all::<L, 1, 1>(lanes),
        }
    }
}

impl<D: Dots> Rows<'_, D> {
    /// `R` rows and `C` columns at a time.
    #[inline(always)]
    fn all<L: Lanes, const R: usize, const C: usize>(&mut self, lanes: L) {
        let (rows, rest) = self.rows.as_chunks::<R>();
        for (i, rows) in rows.iter().enumerate() {
            self.with_columns::<L, R, C>(lanes, R * i, rows);
        }
        for (i, row) in rest.iter().enumerate() {
            self.with_columns::<L, 1, C>(lanes, R * rows.len() + i, &[*row]);
        }
    }

    /// Rows from `first` on with all columns.
    #[inline(always)]
    fn with_columns<L: Lanes, const R: usize, const C: usize>(
        &mut self,
        lanes: L,
        first: usize,
        rows: &[&[u8]; R],
    ) {
        let out = &mut self.out[first * self.columns.len()..];
        let (columns, rest) = self.columns.as_chunks::<C>();
        for (i, columns) in columns.iter().enumerate() {
            let dots = D::dots::<L, R, C>(lanes, rows, columns);
            for (dots, out) in dots.iter().zip(out.chunks_mut(self.columns.len())) {
                out[C * i..][..C].copy_from_slice(dots);
            }
        }
        for (i, column) in rest.as_chunks::<1>().0.iter().enumerate() {
            let dots = D::dots::<L, R, 1>(lanes, rows, column);
            for (dots, out) in dots.iter().zip(out.chunks_mut(self.columns.len())) {
                out[C * columns.len() + i] = dots[0];
            }
        }
    }
}

/// Repeats a statement for each of eight units, with the unit's index as a constant: which bits of a block a unit has and which sums it is
/// added to is then known to the compiler, and sums stay in registers. It leaves a loop over this body as a loop.
macro_rules! for_units {
    ($unit:ident => $body:block) => {
        $crate::cpu::simd::gemv::for_units!(@each $unit => $body; 0 1 2 3 4 5 6 7)
    };
    (@each $unit:ident => $body:block; $($index:literal)*) => {
        $({
            const $unit: usize = $index;
            $body
        })*
    };
}
pub(super) use for_units;

/// Dot products of a [`Format`].
#[derive(Debug)]
pub(super) struct UnitDots<F>(PhantomData<F>);

impl<F: Format> Dots for UnitDots<F> {
    const SEVERAL_ROWS: bool = true;

    #[inline(always)]
    fn two_rows<L: Lanes>(lanes: L) -> bool {
        F::SCALED && lanes.unit_bytes().is_some()
    }

    #[inline(always)]
    fn dots<L: Lanes, const R: usize, const C: usize>(
        lanes: L,
        rows: &[&[u8]; R],
        columns: &[Column<'_>; C],
    ) -> [[f32; C]; R] {
        if let (true, Some(bytes)) = (F::SCALED, lanes.unit_bytes()) {
            return unit_bytes::dots::<L, F, R, C>(lanes, bytes, rows, columns);
        }
        let mut sums = [[[lanes.splat(0.0); 2]; C]; R];
        let mut x: [&[[f32; 32]]; C] = [&[]; C];
        for (x, column) in x.iter_mut().zip(columns) {
            *x = column.x.as_chunks().0;
        }
        let (units, distance, mut rest) =
            (rows[0].len() / F::BYTES, prefetch_distance(rows), *rows);
        for index in 0..units / STEP_UNITS {
            let (mut groups, mut scales) = ([&[][..]; R], [[1.0; STEP_UNITS]; R]);
            for r in 0..R {
                (groups[r], rest[r]) = rest[r].split_at(STEP_UNITS * F::BYTES);
                lanes.prefetch_after(groups[r], distance);
                if F::SCALED {
                    scales[r] = lanes.strided_halves(groups[r], F::BYTES);
                }
            }
            let scales = lanes.in_memory(&scales);
            let mut group_x = [&[[0.0; 32]; STEP_UNITS]; C];
            for (group_x, x) in group_x.iter_mut().zip(&x) {
                *group_x = at(x, index * STEP_UNITS);
            }
            for_units!(UNIT => {
                for r in 0..R {
                    let w = F::values(lanes, &groups[r][UNIT * F::BYTES..][..F::BYTES]);
                    for c in 0..C {
                        let x = halves(lanes, &group_x[c][UNIT]);
                        sums[r][c] = add_unit::<L, F>(lanes, (w, scales[r][UNIT]), x, UNIT, sums[r][c]);
                    }
                }
            });
        }
        for unit in units / STEP_UNITS * STEP_UNITS..units {
            for r in 0..R {
                let (block, after) = rest[r].split_at(F::BYTES);
                rest[r] = after;
                let w = F::values(lanes, block);
                let scale = if F::SCALED { lanes.half(*at(block, 0)) } else { 1.0 };
                for c in 0..C {
                    let x = halves(lanes, &x[c][unit]);
                    sums[r][c] = add_unit::<L, F>(lanes, (w, scale), x, unit, sums[r][c]);
                }
            }
        }
        let mut out = [[0.0; C]; R];
        for r in 0..R {
            for c in 0..C {
                out[r][c] = lanes.sum(lanes.add(sums[r][c][0], sums[r][c][1]));
            }
        }
        out
    }
}

/// Adds the products of a unit.
#[inline(always)]
fn add_unit<L: Lanes, F: Format>(
    lanes: L,
    (w, scale): ([L::Floats; 2], f32),
    x: [L::Floats; 2],
    unit: usize,
    mut sums: [L::Floats; 2],
) -> [L::Floats; 2] {
    match F::SCALED {
        true => sums[unit % 2] = lanes.add_scaled_unit(scale, w, x, sums[unit % 2]),
        false => sums = [lanes.fma(w[0], x[0], sums[0]), lanes.fma(w[1], x[1], sums[1])],
    }
    sums
}
