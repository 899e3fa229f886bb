//! Matmuls with many columns: a block of rows is decoded to f32, 256 weights of each at a time, and multiplied with columns packed 16 side
//! by side, in tiles whose sums stay in registers.

use std::marker::PhantomData;

use rullama_gguf::{DType, quant::dequantize};

use super::{
    Kernel,
    formats::{Format, at, with_format},
    integer::scaled,
    integer_format::{IntegerFormat, with_integer_format},
    lanes::{Lanes, Tile, WIDTH},
    run,
};
use crate::threads::for_pieces;

/// Rows that share the columns in the cache.
pub(crate) const BLOCK_ROWS: usize = 32;
/// Elements of a row that are decoded at a time: a multiple of every format's block. Two panels of them fit the L1 cache.
pub(super) const DEPTH: usize = 256;

/// Columns packed for tiles: 16 side by side, zeros after the last column and after the last element.
#[derive(Debug)]
pub(crate) struct Panels {
    width: usize,
    panels: usize,
    /// `[panels][width, rounded up][16]`
    values: Vec<f32>,
}

impl Panels {
    /// Packs columns of `width` elements.
    pub(crate) fn new(width: usize, columns: &[&[f32]]) -> Self {
        let (panels, padded) = (columns.len().div_ceil(WIDTH), width.next_multiple_of(DEPTH));
        let mut values = vec![0.0; panels * padded * WIDTH];
        let pack = |(): &mut (), panel: usize, out: &mut [f32]| {
            let columns = &columns[panel * WIDTH..];
            // Some elements of all columns at a time, so that writes stay in the L1 cache.
            for from in (0..width).step_by(64) {
                for (lane, column) in columns.iter().take(WIDTH).enumerate() {
                    let part = &column[from..width.min(from + 64)];
                    let out = out[from * WIDTH + lane..].iter_mut().step_by(WIDTH);
                    out.zip(part).for_each(|(out, x)| *out = *x);
                }
            }
        };
        for_pieces(&mut values, padded * WIDTH, (width * columns.len()) as u64, || (), pack);
        Self { width, panels, values }
    }

    /// A panel's elements from `DEPTH · step` on.
    #[inline(always)]
    fn part(&self, panel: usize, step: usize) -> &[[f32; WIDTH]; DEPTH] {
        let steps = self.width.div_ceil(DEPTH);
        let all = self.values.as_chunks::<WIDTH>().0.as_chunks::<DEPTH>().0;
        &all[panel * steps + step]
    }
}

/// Memory of one thread.
#[derive(Debug, Default)]
pub(crate) struct GemmScratch {
    /// `[rows][DEPTH]`
    decoded: Vec<[f32; DEPTH]>,
    /// `[panels][rows][16]`
    sums: Vec<[f32; WIDTH]>,
}

impl GemmScratch {
    /// The result of a row and a column, after [`gemm`].
    pub(crate) fn result(&self, row: usize, column: usize) -> f32 {
        self.sums[column / WIDTH * BLOCK_ROWS + row][column % WIDTH]
    }
}

/// Multiplies up to [`BLOCK_ROWS`] rows with all columns.
pub(crate) fn gemm(dtype: DType, rows: &[&[u8]], columns: &Panels, scratch: &mut GemmScratch) {
    let GemmScratch { decoded, sums } = scratch;
    decoded.resize(BLOCK_ROWS, [0.0; DEPTH]);
    sums.clear();
    sums.resize(columns.panels * BLOCK_ROWS, [0.0; WIDTH]);
    let bytes_of = |elements: usize| elements / dtype.block_elements() * dtype.block_bytes();
    for (step, from) in (0..columns.width).step_by(DEPTH).enumerate() {
        let count = DEPTH.min(columns.width - from);
        for (row, out) in rows.iter().zip(decoded.iter_mut()) {
            let bytes = &row[bytes_of(from)..bytes_of(from + count)];
            decode(dtype, bytes, &mut out[..count]);
            out[count..].fill(0.0);
        }
        run(Tiles { rows: rows.len(), decoded, columns, step, sums });
    }
}

/// Decodes whole blocks, to the same bits as [`dequantize`].
fn decode(dtype: DType, bytes: &[u8], out: &mut [f32]) {
    with_integer_format!(dtype, F => {
        return run(DecodeIntegers::<F> { bytes, out, format: PhantomData });
    }, {});
    with_format!(dtype, F => {
        if out.len().is_multiple_of(32) {
            return run(Decode::<F> { bytes, out, format: PhantomData });
        }
    }, {});
    dequantize(dtype, bytes, out).expect("the plan checked type and length");
}

pub(super) struct Decode<'a, F> {
    pub(super) bytes: &'a [u8],
    pub(super) out: &'a mut [f32],
    pub(super) format: PhantomData<F>,
}

impl<F: Format> Kernel for Decode<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let out = self.out.as_chunks_mut::<32>().0;
        for (block, out) in self.bytes.chunks_exact(F::BYTES).zip(out) {
            let (mut values, out) = (F::values(lanes, block), out.as_chunks_mut::<WIDTH>().0);
            if F::SCALED {
                let scale = lanes.splat(lanes.half(*at(block, 0)));
                values = [lanes.mul(scale, values[0]), lanes.mul(scale, values[1])];
            }
            lanes.store(values[0], &mut out[0]);
            lanes.store(values[1], &mut out[1]);
        }
    }
}

pub(super) struct DecodeIntegers<'a, F> {
    pub(super) bytes: &'a [u8],
    pub(super) out: &'a mut [f32],
    pub(super) format: PhantomData<F>,
}

/// `level · scale` is exact, and so is its product with the factor: together they have at most 24 bits.
impl<F: IntegerFormat> Kernel for DecodeIntegers<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let (book, out) = (F::book(), self.out.as_chunks_mut::<32>().0.chunks_exact_mut(8));
        for (block, out) in self.bytes.chunks_exact(F::BYTES).zip(out) {
            let scales = F::scales(lanes, block);
            let factor = lanes.splat(scales.factor);
            for (unit, out) in out.iter_mut().enumerate() {
                let w = scaled::<L, F>(lanes, book, block, &scales.pairs, unit);
                let w = lanes.word_floats(w);
                for (half, out) in out.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
                    let mut value = lanes.mul(factor, w[half]);
                    if F::MINIMA {
                        let minimum = f32::from(scales.minima[unit + 8 * half]);
                        value = lanes.sub(value, lanes.splat(scales.minima_factor * minimum));
                    }
                    lanes.store(value, out);
                }
            }
        }
    }
}

/// Adds the products of one step to all sums.
pub(super) struct Tiles<'a> {
    pub(super) rows: usize,
    pub(super) decoded: &'a [[f32; DEPTH]],
    pub(super) columns: &'a Panels,
    pub(super) step: usize,
    pub(super) sums: &'a mut [[f32; WIDTH]],
}

impl Kernel for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        match L::TILE {
            Tile::Large => self.all::<L, 8, 2>(lanes),
            Tile::Medium => self.all::<L, 4, 1>(lanes),
            Tile::Small => self.all::<L, 2, 1>(lanes),
        }
    }
}

impl Tiles<'_> {
    #[inline(always)]
    fn all<L: Lanes, const R: usize, const P: usize>(&mut self, lanes: L) {
        let mut panel = 0;
        while panel + P <= self.columns.panels {
            self.panels::<L, R, P>(lanes, panel);
            panel += P;
        }
        while panel < self.columns.panels {
            self.panels::<L, R, 1>(lanes, panel);
            panel += 1;
        }
    }

    /// All rows with `P` panels.
    #[inline(always)]
    fn panels<L: Lanes, const R: usize, const P: usize>(&mut self, lanes: L, first: usize) {
        let mut x = [self.columns.part(first, self.step); P];
        for (p, x) in x.iter_mut().enumerate() {
            *x = self.columns.part(first + p, self.step);
        }
        let groups = self.decoded.as_chunks::<R>().0.iter().take(self.rows.div_ceil(R));
        for (group, w) in groups.enumerate() {
            let tile = tile::<L, R, P>(lanes, w, x);
            for (p, _) in x.iter().enumerate() {
                let sums = &mut self.sums[(first + p) * BLOCK_ROWS + group * R..][..R];
                for (r, sum) in sums.iter_mut().enumerate() {
                    lanes.store(lanes.add(lanes.load(sum), tile[r][p]), sum);
                }
            }
        }
    }
}

/// The products of `R` rows and `P` panels.
#[inline(always)]
fn tile<L: Lanes, const R: usize, const P: usize>(
    lanes: L,
    w: &[[f32; DEPTH]; R],
    x: [&[[f32; WIDTH]; DEPTH]; P],
) -> [[L::Floats; P]; R] {
    let mut sums = [[lanes.splat(0.0); P]; R];
    for k in 0..DEPTH {
        let mut columns = [lanes.splat(0.0); P];
        for p in 0..P {
            columns[p] = lanes.load(&x[p][k]);
        }
        for r in 0..R {
            let w = lanes.splat(w[r][k]);
            for p in 0..P {
                sums[r][p] = lanes.fma(w, columns[p], sums[r][p]);
            }
        }
    }
    sums
}
