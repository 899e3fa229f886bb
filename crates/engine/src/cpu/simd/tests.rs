//! Every level of this processor against the definition: decoded rows times columns, in f64.

use std::marker::PhantomData;

use rullama_gguf::{
    DType,
    quant::{dequantize, quantize},
};

use super::{
    Column, GemmScratch, Panels,
    formats::{Format, with_format},
    gemm,
    gemm::{DEPTH, Decode, DecodeIntegers, Tiles},
    gemv,
    gemv::{Rows, UnitDots},
    integer::{IntegerDots, Prepare},
    integer_format::{IntegerFormat, with_integer_format},
    nibbles::{NibbleDots, PrepareNibbles},
    unit_bytes::PrepareUnits,
};

const FORMATS: [DType; 23] = [
    DType::Q8_0,
    DType::Q4_0,
    DType::Q5_0,
    DType::Q4_K,
    DType::Q5_K,
    DType::Q6_K,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::Q4_1,
    DType::IQ4_NL,
    DType::Q2_K,
    DType::Q3_K,
    DType::IQ4_XS,
    DType::IQ3_S,
    DType::IQ3_XXS,
    DType::IQ2_S,
    DType::IQ2_XS,
    DType::IQ2_XXS,
    DType::IQ1_S,
    DType::IQ1_M,
    DType::TQ1_0,
    DType::TQ2_0,
];

/// The formats that are multiplied in integers on all levels.
fn integer_formats() -> impl Iterator<Item = DType> {
    FORMATS.into_iter().filter(|dtype| dtype.block_elements() == 256)
}

/// The formats that are multiplied in integers on some level.
fn formats_with_digits() -> impl Iterator<Item = DType> {
    integer_formats().chain([DType::Q4_0, DType::Q5_0, DType::Q8_0, DType::IQ4_NL])
}

/// Numbers from -1 to 1 without a pattern.
fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / 2_147_483_648.0 - 1.0
    };
    (0..count).map(next).collect()
}

/// `Σ w · x` in f64, and the bound of a sum of these terms in f32: each is rounded at most `16 + len / 16` times (level, scale, product, the
/// sums of its lane, of the lanes; fewer in integers), and minima add terms of at most the same magnitude as the levels they cancel.
fn expected(w: &[f32], x: &[f32]) -> (f64, f64) {
    let terms = || w.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x));
    let largest = w.iter().fold(0.0, |most: f32, w| most.max(w.abs()));
    let magnitude: f64 = x.iter().map(|x| f64::from(x.abs() * largest)).sum();
    let roundings = 16.0 + w.len() as f64 / 16.0;
    (terms().sum(), 4.0 * magnitude * roundings * f64::from(f32::EPSILON) / 2.0)
}

fn check(dtype: DType, got: f32, w: &[f32], x: &[f32]) {
    let (wanted, bound) = expected(w, x);
    assert!((f64::from(got) - wanted).abs() <= bound, "{dtype:?}: {got}, not {wanted} ± {bound}");
}

/// Where a block of an integer format has its f16 factors; those of IQ1_M are spread over the last eight bytes.
fn factors(dtype: DType) -> Vec<usize> {
    match dtype {
        DType::Q4_K | DType::Q5_K => vec![0, 2],
        DType::Q2_K => vec![80, 82],
        DType::Q3_K => vec![108],
        DType::Q6_K => vec![208],
        DType::TQ1_0 => vec![52],
        DType::TQ2_0 => vec![64],
        DType::IQ1_M => vec![],
        _ => vec![0],
    }
}

/// Sets the factors of a block of an integer format to 0.5, and that of minima to 2.
fn set_factors(dtype: DType, block: &mut [u8]) {
    for (at, factor) in factors(dtype).into_iter().zip([[0x00, 0x38], [0x00, 0x40]]) {
        block[at..at + 2].copy_from_slice(&factor);
    }
    if dtype == DType::IQ1_M {
        // The bits of 0.5, four at a time from the lowest, in the upper halves of bytes.
        for (at, bits) in [(49, 0x00), (51, 0x00), (53, 0x80), (55, 0x30)] {
            block[at] = block[at] & 0x0F | bits;
        }
    }
}

/// A row of noise; for formats without an encoder, of any levels and scales.
fn row_of(dtype: DType, width: usize) -> Vec<u8> {
    if dtype.encodable() {
        return quantize(dtype, &noise(width, 1)).expect("an encoder");
    }
    let bytes = noise(width / dtype.block_elements() * dtype.block_bytes(), 7);
    let mut row: Vec<u8> = bytes.iter().map(|x| (x * 127.0) as i8 as u8).collect();
    row.chunks_exact_mut(dtype.block_bytes()).for_each(|block| set_factors(dtype, block));
    row
}

fn decoded(dtype: DType, bytes: &[u8], width: usize) -> Vec<f32> {
    let mut out = vec![0.0; width];
    dequantize(dtype, bytes, &mut out).expect("whole blocks");
    out
}

#[test]
fn rows_times_a_few_columns_equal_the_definition() {
    for dtype in FORMATS {
        for width in [256, 768, 1536, 32, 544_usize] {
            if !width.is_multiple_of(dtype.block_elements()) {
                continue;
            }
            let row = row_of(dtype, width);
            let w = decoded(dtype, &row, width);
            let x: Vec<Vec<f32>> = (0..7).map(|seed| noise(width, 2 + seed)).collect();
            let columns: Vec<_> = x.iter().map(|x| Column::new(dtype, x)).collect();
            let mut out = [f32::NAN; 7];
            gemv(dtype, &[&row], &columns, &mut Vec::new(), &mut out);
            for (got, x) in out.iter().zip(&x) {
                check(dtype, *got, &w, x);
            }
            // Batch-invariance: a column alone, with one or several rows, gives the same bits.
            for (column, together) in columns.chunks(1).zip(out) {
                for count in [1, 3, 4, 5] {
                    let (rows, mut alone) = (vec![row.as_slice(); count], vec![f32::NAN; count]);
                    gemv(dtype, &rows, column, &mut Vec::new(), &mut alone);
                    for alone in alone {
                        assert_eq!(alone.to_bits(), together.to_bits(), "{dtype:?} of {width}");
                    }
                }
            }
        }
    }
}

#[test]
fn rows_times_many_columns_equal_the_definition() {
    for dtype in FORMATS {
        // Widths that are no multiple of a step, and numbers of columns and rows that fill no tile.
        let width = if dtype.block_elements() == 256 { 768 } else { 544 };
        for (rows, count) in [(1, 9), (5, 16), (32, 50)] {
            let bytes = row_of(dtype, rows * width);
            let row_bytes: Vec<&[u8]> = bytes.chunks_exact(bytes.len() / rows).collect();
            let x: Vec<Vec<f32>> = (0..count).map(|seed| noise(width, 2 + seed as u32)).collect();
            let columns: Vec<&[f32]> = x.iter().map(Vec::as_slice).collect();
            let mut scratch = GemmScratch::default();
            gemm(dtype, &row_bytes, &Panels::new(width, &columns), &mut scratch);
            for (r, row) in row_bytes.iter().enumerate() {
                let w = decoded(dtype, row, width);
                for (c, x) in x.iter().enumerate() {
                    check(dtype, scratch.result(r, c), &w, x);
                }
            }
        }
    }
}

#[test]
fn decoded_blocks_equal_those_of_the_format() {
    for dtype in FORMATS {
        // All bit patterns of levels and scales; block scales stay finite.
        let mut bytes: Vec<u8> = noise(64 * dtype.block_bytes().max(64), 5)
            .iter()
            .map(|x| (x * 127.0) as i8 as u8)
            .collect();
        bytes.truncate(bytes.len() / (32 * dtype.block_bytes()) * 32 * dtype.block_bytes());
        for block in bytes.chunks_exact_mut(dtype.block_bytes().max(2)) {
            match dtype.block_elements() {
                256 => {
                    let finite = factors(dtype).into_iter().map(|at| at + 1);
                    finite.for_each(|at| block[at] &= 0xBB);
                    if dtype == DType::IQ1_M {
                        block[55] &= 0xBF;
                    }
                }
                _ => {
                    let len = block.len();
                    [1, 3 % len, len - 1].into_iter().for_each(|at| block[at] &= 0xBB);
                }
            }
        }
        let elements = bytes.len() / dtype.block_bytes() * dtype.block_elements();
        let wanted = decoded(dtype, &bytes, elements);
        for_levels(|level| {
            let mut out = vec![f32::NAN; elements];
            let (bytes, kept) = (&bytes, &mut out);
            with_integer_format!(dtype, F => {
                run_at(level, DecodeIntegers::<F> { bytes, out: kept, format: PhantomData });
            }, with_format!(dtype, F => {
                run_at(level, Decode::<F> { bytes, out: kept, format: PhantomData });
            }, return));
            let same = out.iter().zip(&wanted).all(|(a, b)| a.to_bits() == b.to_bits() || a == b);
            assert!(same, "{dtype:?} at {level:?}");
        });
    }
}

#[test]
fn every_level_multiplies_rows_of_every_format() {
    // Five rows are a group of four and a rest, or two groups of two. The second width is no multiple of a group's.
    const ROWS: usize = 5;
    let cases = FORMATS.into_iter().flat_map(|dtype| [(dtype, 1536), (dtype, 544)]);
    for (dtype, width) in cases.filter(|(dtype, width)| width % dtype.block_elements() == 0) {
        let bytes = row_of(dtype, ROWS * width);
        let rows: Vec<&[u8]> = bytes.chunks_exact(bytes.len() / ROWS).collect();
        let w = decoded(dtype, &bytes, ROWS * width);
        let x: Vec<Vec<f32>> = (0..5).map(|seed| noise(width, 2 + seed)).collect();
        for_levels(|level| {
            let columns: Vec<_> = x.iter().map(|x| column_at(level, dtype, x)).collect();
            for count in [1, 5] {
                let (columns, mut out) = (&columns[..count], vec![f32::NAN; ROWS * count]);
                if !multiply_at(level, dtype, &rows, columns, &mut out) {
                    return;
                }
                for (w, out) in w.chunks(width).zip(out.chunks(count)) {
                    out.iter().zip(&x).for_each(|(got, x)| check(dtype, *got, w, x));
                }
            }
        });
    }
}

/// [`gemv`] at a level; false for formats without a kernel.
fn multiply_at(
    level: Level,
    dtype: DType,
    rows: &[&[u8]],
    columns: &[Column<'_>],
    out: &mut [f32],
) -> bool {
    with_integer_format!(dtype, F => {
        run_at(level, Rows::<IntegerDots<F>> { rows, columns, out, dots: PhantomData });
        return true;
    }, {});
    if !columns[0].nibbles.is_empty() {
        run_at(level, Rows::<NibbleDots> { rows, columns, out, dots: PhantomData });
        return true;
    }
    with_format!(dtype, F => {
        run_at(level, Rows::<UnitDots<F>> { rows, columns, out, dots: PhantomData });
    }, return false);
    true
}

/// A column, prepared at a level.
fn column_at(level: Level, dtype: DType, x: &[f32]) -> Column<'_> {
    let mut column = Column::new(dtype, x);
    if !column.nibbles.is_empty() {
        column.nibbles = run_at(level, PrepareNibbles(x));
    }
    if column.nibbles.is_empty() && is_scaled(dtype) {
        column.units = run_at(level, PrepareUnits(x));
    }
    with_integer_format!(dtype, F => {
        column.fixed = run_at(level, Prepare { x, byte_levels: F::BYTE_LEVELS });
    }, {});
    column
}

/// Whether a format has units with scales.
fn is_scaled(dtype: DType) -> bool {
    with_format!(dtype, F => F::SCALED, false)
}

/// A row times a column, at a level.
fn dot_at(level: Level, dtype: DType, row: &[u8], x: &[f32]) -> f32 {
    let mut out = [f32::NAN];
    assert!(multiply_at(level, dtype, &[row], &[column_at(level, dtype, x)], &mut out));
    out[0]
}

/// 512 weights of a format with all levels and scales made of one byte, and factors of 0.5 and 2.
fn extreme_row(dtype: DType, byte: u8) -> Vec<u8> {
    let mut block = vec![byte; dtype.block_bytes()];
    set_factors(dtype, &mut block);
    block.repeat(512 / dtype.block_elements())
}

#[test]
fn extreme_levels_scales_and_digits_do_not_overflow() {
    // As fixed-point numbers 2²⁹ + 2¹⁵, and 2²² + 2¹⁵ + 2⁷: low digits of -2¹⁵ or -2⁷, the largest there are. 1.984 is the largest that is not
    // rounded up to the next power of two for digits of bytes.
    let (low, low_bytes) = (f32::from_bits(0x3F80_0200), f32::from_bits(0x3F81_0100));
    let most = f32::from_bits(0x3FFD_FFFF);
    let same = [low, -low, low_bytes, -low_bytes, most, -most, 2.0 - f32::EPSILON];
    let columns = same.map(|x| vec![x; 512]).into_iter().chain([noise(512, 9)]);
    let columns: Vec<Vec<f32>> = columns.collect();
    for dtype in formats_with_digits() {
        for byte in [0x00, 0xFF, 0x0F, 0xF0, 0x80, 0x7F] {
            let mut row = extreme_row(dtype, byte);
            // The largest product: levels of -32 times scales of -128.
            if dtype == DType::Q6_K && byte == 0x00 {
                row.chunks_exact_mut(210).for_each(|block| block[192..208].fill(0x80));
            }
            let w = decoded(dtype, &row, 512);
            for_levels(|level| {
                let dot = |x: &[f32]| dot_at(level, dtype, &row, x);
                columns.iter().for_each(|x| check(dtype, dot(x), &w, x));
            });
        }
    }
}

#[test]
fn blocks_of_any_bits_are_multiplied_in_integers() {
    for dtype in integer_formats() {
        // Any bits of levels and scales.
        let noise_bytes = noise(8 * dtype.block_bytes(), 7);
        let mut row: Vec<u8> = noise_bytes.iter().map(|x| (x * 127.0) as i8 as u8).collect();
        row.chunks_exact_mut(dtype.block_bytes()).for_each(|block| set_factors(dtype, block));
        let (w, x) = (decoded(dtype, &row, 2048), noise(2048, 8));
        for_levels(|level| check(dtype, dot_at(level, dtype, &row, &x), &w, &x));
    }
}

/// Elements far below the largest one of their block, and blocks of very small and very large numbers.
#[test]
fn activations_of_any_magnitude_are_multiplied() {
    for dtype in formats_with_digits() {
        let row = row_of(dtype, 512);
        let w = decoded(dtype, &row, 512);
        for factor in [0.0, 1e-29, 1e-6, 1.0, 1e6, 1e30] {
            let mut x: Vec<f32> = noise(512, 2).iter().map(|x| x * factor).collect();
            for_levels(|level| check(dtype, dot_at(level, dtype, &row, &x), &w, &x));
            x[300] = 1000.0 * factor;
            for_levels(|level| check(dtype, dot_at(level, dtype, &row, &x), &w, &x));
            for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                x[7] = wrong;
                for_levels(|level| {
                    // In floats, an infinity stays one.
                    let got = dot_at(level, dtype, &row, &x);
                    assert!(got.is_nan() || wrong.is_infinite() && got.is_infinite(), "{dtype:?}");
                });
            }
        }
    }
}

/// Q4_0 multiplied without unpacking, with nibbles of 0 and 15 alone and of any bits, and activations that are divided by up to 2¹².
#[test]
fn nibbles_are_multiplied_without_unpacking() {
    let (dtype, width) = (DType::Q4_0, 512);
    for bits in [0x00, 0xFF, 0x0F, 0xF0, 0x71] {
        let noise_bytes = noise(width / 32 * 18, bits.into());
        let mut row: Vec<u8> = noise_bytes.iter().map(|x| (x * 127.0) as i8 as u8).collect();
        for (i, block) in row.as_chunks_mut::<18>().0.iter_mut().enumerate() {
            // Scales from 0.5 to 4, of both signs.
            let (exponent, sign) = (0x38 + 4 * (i as u8 % 4), (i as u8 % 2) << 7);
            block[..2].copy_from_slice(&[i as u8, exponent | sign]);
            if bits != 0x71 {
                block[2..].fill(bits);
            }
        }
        let w = decoded(dtype, &row, width);
        for factor in [0.0, 1e-29, 1.0, 1e30] {
            let x: Vec<f32> = noise(width, 3).iter().map(|x| x * factor).collect();
            for_levels(|level| {
                check(dtype, dot_at(level, dtype, &row, &x), &w, &x);
            });
        }
    }
}

#[test]
fn every_level_computes_tiles() {
    let (rows, count) = (32, 50);
    let all = noise(rows * DEPTH, 1);
    let decoded = all.as_chunks::<DEPTH>().0;
    let x: Vec<Vec<f32>> = (0..count).map(|seed| noise(DEPTH, 2 + seed)).collect();
    let columns: Vec<&[f32]> = x.iter().map(Vec::as_slice).collect();
    let columns = Panels::new(DEPTH, &columns);
    for_levels(|level| {
        let mut sums = vec![[0.0; 16]; 4 * rows];
        run_at(level, Tiles { rows, decoded, columns: &columns, step: 0, sums: &mut sums });
        for (c, x) in x.iter().enumerate() {
            for (r, w) in decoded.iter().enumerate() {
                check(DType::F32, sums[c / 16 * rows + r][c % 16], w, x);
            }
        }
    });
}

#[cfg(target_arch = "x86_64")]
use super::x86::{Level, run as run_at};

#[cfg(target_arch = "x86_64")]
fn for_levels(test: impl Fn(Level)) {
    use Level::{Avx2, Avx512, Avx512Vnni, AvxVnni, Plain};
    [Plain, Avx2, AvxVnni, Avx512, Avx512Vnni].into_iter().for_each(test);
}

#[cfg(target_arch = "aarch64")]
use super::neon::{Level, run as run_at};

#[cfg(target_arch = "aarch64")]
fn for_levels(test: impl Fn(Level)) {
    [Level::Plain, Level::Neon, Level::NeonDot].into_iter().for_each(test);
}

/// The levels of other targets.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[derive(Debug, Clone, Copy)]
enum Level {
    Plain,
    /// What the target's kernels run on.
    Best,
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn for_levels(test: impl Fn(Level)) {
    [Level::Plain, Level::Best].into_iter().for_each(test);
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn run_at<K: super::Kernel>(level: Level, kernel: K) -> K::Output {
    match level {
        Level::Plain => kernel.run(super::lanes::Plain),
        Level::Best => super::run(kernel),
    }
}
