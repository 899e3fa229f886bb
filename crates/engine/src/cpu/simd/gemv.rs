//! Dot products of a weight's row with a few columns: f32 arithmetic on the levels of the row's format, scales applied per unit.

use std::marker::PhantomData;

use rullama_gguf::{DType, quant::dequantize};

use super::{
    Kernel,
    formats::{Format, Scaling, with_format},
    lanes::{Lanes, WIDTH},
    run,
    vector::{dot, halves},
};

/// Columns that are multiplied with a decoded unit at a time.
const TOGETHER: usize = 4;

/// A column with what the formats need of it.
#[derive(Debug)]
pub(crate) struct Column<'a> {
    x: &'a [f32],
    /// Eight zeros and the sums of eight units, per 256 elements: the factors of a block's scales and minima.
    sums: Vec<[f32; WIDTH]>,
}

impl<'a> Column<'a> {
    /// Prepares a column for weights of a format.
    pub(crate) fn new(dtype: DType, x: &'a [f32]) -> Self {
        let sums = match dtype {
            DType::Q4_K | DType::Q5_K => {
                x.as_chunks::<256>().0.iter().map(|block| run(UnitSums(block))).collect()
            }
            _ => Vec::new(),
        };
        Self { x, sums }
    }
}

/// The sums of eight units, after eight zeros.
struct UnitSums<'a>(&'a [f32; 256]);

impl Kernel for UnitSums<'_> {
    type Output = [f32; WIDTH];

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Self::Output {
        let mut sums = [0.0; WIDTH];
        for (sum, unit) in sums[8..].iter_mut().zip(self.0.as_chunks::<32>().0) {
            let [a, b] = halves(lanes, unit);
            *sum = lanes.sum(lanes.add(a, b));
        }
        sums
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
    with_format!(dtype, F => {
        if width.is_multiple_of(32 * F::UNITS) {
            return run(Row::<F> { row, columns, out, format: PhantomData });
        }
    }, {});
    decoded.resize(width, 0.0);
    dequantize(dtype, row, decoded).expect("the plan checked type and length");
    for (out, column) in out.iter_mut().zip(columns) {
        *out = dot(decoded, column.x);
    }
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
        let (columns, rest) = self.columns.as_chunks::<TOGETHER>();
        let (out, out_rest) = self.out.as_chunks_mut::<TOGETHER>();
        for (out, columns) in out.iter_mut().zip(columns) {
            *out = row_dots::<L, F, TOGETHER>(lanes, self.row, columns);
        }
        for (out, columns) in out_rest.iter_mut().zip(rest.as_chunks::<1>().0) {
            [*out] = row_dots::<L, F, 1>(lanes, self.row, columns);
        }
    }
}

/// The sums of each column are independent, so that their number does not change a bit.
#[inline(always)]
fn row_dots<L: Lanes, F: Format, const C: usize>(
    lanes: L,
    row: &[u8],
    columns: &[Column<'_>; C],
) -> [f32; C] {
    let zero = lanes.splat(0.0);
    let (mut sums, mut minima) = ([[zero; 2]; C], [zero; C]);
    let mut units: [&[[f32; 32]]; C] = [&[]; C];
    for (units, column) in units.iter_mut().zip(columns) {
        *units = column.x.as_chunks().0;
    }
    for (index, block) in row.chunks_exact(F::BYTES).enumerate() {
        let scales = F::scales(lanes, block);
        if F::SCALING == Scaling::UnitMinimum {
            let all = lanes.load(&scales);
            for c in 0..C {
                let factors = lanes.load(&columns[c].sums[index]);
                minima[c] = lanes.fma(all, factors, minima[c]);
            }
        }
        let mut x: [&[[f32; 32]]; C] = [&[]; C];
        for (x, units) in x.iter_mut().zip(&units) {
            *x = &units[index * F::UNITS..][..F::UNITS];
        }
        for unit in 0..F::UNITS {
            let w = F::unit(lanes, block, unit);
            for c in 0..C {
                let x = halves(lanes, &x[c][unit]);
                sums[c] = add_unit::<L, F>(lanes, (unit, &scales), w, x, sums[c]);
            }
        }
    }
    let mut out = [0.0; C];
    for c in 0..C {
        out[c] = lanes.sum(lanes.sub(lanes.add(sums[c][0], sums[c][1]), minima[c]));
    }
    out
}

#[inline(always)]
fn add_unit<L: Lanes, F: Format>(
    lanes: L,
    (unit, scales): (usize, &[f32; WIDTH]),
    w: [L::Floats; 2],
    x: [L::Floats; 2],
    mut sums: [L::Floats; 2],
) -> [L::Floats; 2] {
    let scaled = |scale: usize, half: usize, sum| {
        lanes.fma(lanes.splat(scales[scale]), lanes.mul(w[half], x[half]), sum)
    };
    match F::SCALING {
        Scaling::None => [lanes.fma(w[0], x[0], sums[0]), lanes.fma(w[1], x[1], sums[1])],
        Scaling::Block => [scaled(0, 0, sums[0]), scaled(0, 1, sums[1])],
        Scaling::Half => [scaled(2 * unit, 0, sums[0]), scaled(2 * unit + 1, 1, sums[1])],
        Scaling::UnitMinimum => {
            let product = lanes.fma(w[1], x[1], lanes.mul(w[0], x[0]));
            let sum = &mut sums[unit % 2];
            *sum = lanes.fma(lanes.splat(scales[unit]), product, *sum);
            sums
        }
    }
}
