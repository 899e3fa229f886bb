//! Dot products of a weight's row with a few columns. Formats with blocks of 256 weights are multiplied in integers; this file has those with
//! blocks of 32 or none: f32 arithmetic on the levels, scales applied per unit.

use std::marker::PhantomData;

use rullama_gguf::{DType, quant::dequantize};

use super::{
    Kernel,
    formats::{Format, with_format},
    integer::{Digits, IntegerRow, digits},
    integer_format::{IntegerFormat, with_integer_format},
    lanes::{Lanes, Tile},
    run,
    vector::{dot, halves},
};

/// Columns that are multiplied with a decoded unit at a time.
const TOGETHER: usize = 4;
/// Units that are multiplied in one step.
const GROUP: usize = 8;

/// A column in the form that a weight's format needs.
#[derive(Debug)]
pub(crate) struct Column<'a> {
    x: &'a [f32],
    /// For formats that are multiplied in integers.
    digits: Vec<Digits>,
}

impl<'a> Column<'a> {
    /// Prepares a column for weights of a format.
    pub(crate) fn new(dtype: DType, x: &'a [f32]) -> Self {
        let is_integer = with_integer_format!(dtype, F => F::BYTES > 0, false);
        Self { x, digits: if is_integer { digits(x) } else { Vec::new() } }
    }
}

/// `out[c] = row · columns[c]`, the same bits for any number of columns. `decoded` is scratch memory for formats without a kernel.
pub(crate) fn gemv(
    dtype: DType,
    row: &[u8],
    columns: &[Column<'_>],
    decoded: &mut Vec<f32>,
    out: &mut [f32],
) {
    let Some(first) = columns.first() else { return };
    let width = first.x.len();
    if with_kernel(dtype, row, columns, out) {
        return;
    }
    decoded.resize(width, 0.0);
    dequantize(dtype, row, decoded).expect("the plan checked type and length");
    for (out, column) in out.iter_mut().zip(columns) {
        *out = dot(decoded, column.x);
    }
}

/// [`gemv`] by the kernel of a format; false if it has none for this width.
fn with_kernel(dtype: DType, row: &[u8], columns: &[Column<'_>], out: &mut [f32]) -> bool {
    let width = columns.first().map_or(0, |column| column.x.len());
    with_integer_format!(dtype, F => {
        for (columns, out) in columns.chunks(TOGETHER).zip(out.chunks_mut(TOGETHER)) {
            let mut digits: [&[Digits]; TOGETHER] = [&[]; TOGETHER];
            digits.iter_mut().zip(columns).for_each(|(digits, column)| *digits = &column.digits);
            let columns = &digits[..columns.len()];
            run(IntegerRow::<F> { row, columns, out, format: PhantomData });
        }
        return true;
    }, {});
    with_format!(dtype, F => {
        if width.is_multiple_of(32) {
            run(Row::<F> { row, columns, out, format: PhantomData });
            return true;
        }
    }, {});
    false
}

pub(super) struct Row<'a, F> {
    pub(super) row: &'a [u8],
    pub(super) columns: &'a [Column<'a>],
    pub(super) out: &'a mut [f32],
    pub(super) format: PhantomData<F>,
}

impl<F: Format> Kernel for Row<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        match L::TILE {
            Tile::Large | Tile::Medium => self.all::<L, TOGETHER>(lanes),
            Tile::Small => self.all::<L, 1>(lanes),
        }
    }
}

impl<F: Format> Row<'_, F> {
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

/// The sums of each column are independent, so that their number does not change a bit.
#[inline(always)]
fn row_dots<L: Lanes, F: Format, const C: usize>(
    lanes: L,
    row: &[u8],
    columns: &[Column<'_>; C],
) -> [f32; C] {
    let mut sums = [[lanes.splat(0.0); 2]; C];
    let groups = row.chunks_exact(GROUP * F::BYTES);
    let rest = groups.remainder();
    let mut x: [&[[f32; 32]]; C] = [&[]; C];
    for (x, column) in x.iter_mut().zip(columns) {
        *x = column.x.as_chunks().0;
    }
    for (index, group) in groups.enumerate() {
        let mut group_x = [&[[0.0; 32]; GROUP]; C];
        for (group_x, x) in group_x.iter_mut().zip(&x) {
            *group_x = x[index * GROUP..].first_chunk().expect("as many units as the row has");
        }
        lanes.prefetch_after(group);
        for_units!(UNIT => {
            let block = &group[UNIT * F::BYTES..][..F::BYTES];
            let (scale, w) = (F::scale(lanes, block), F::values(lanes, block));
            for c in 0..C {
                let x = halves(lanes, &group_x[c][UNIT]);
                sums[c] = add_unit(lanes, scale, w, x, sums[c]);
            }
        });
    }
    let done = row.len() / (GROUP * F::BYTES) * GROUP;
    for (unit, block) in rest.chunks_exact(F::BYTES).enumerate() {
        let (scale, w) = (F::scale(lanes, block), F::values(lanes, block));
        for c in 0..C {
            let x = halves(lanes, &x[c][done + unit]);
            sums[c] = add_unit(lanes, scale, w, x, sums[c]);
        }
    }
    let mut out = [0.0; C];
    for c in 0..C {
        out[c] = lanes.sum(lanes.add(sums[c][0], sums[c][1]));
    }
    out
}

#[inline(always)]
fn add_unit<L: Lanes>(
    lanes: L,
    scale: Option<f32>,
    w: [L::Floats; 2],
    x: [L::Floats; 2],
    sums: [L::Floats; 2],
) -> [L::Floats; 2] {
    match scale {
        None => [lanes.fma(w[0], x[0], sums[0]), lanes.fma(w[1], x[1], sums[1])],
        Some(scale) => lanes.add_scaled_unit(scale, w, x, sums),
    }
}
