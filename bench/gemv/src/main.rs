//! Bytes per second that the CPU executor's kernels read, per format, on one thread: `cargo xtask bench gemv`.
//!
//! Prints the best of many short passes over matrices that together exceed the caches, since other work on the machine only ever slows a
//! pass down, beside a read of the same bytes that adds up 64-bit words.
#![allow(dead_code, unused_imports, reason = "of the engine's modules, only the GEMV is measured")]

use std::{hint::black_box, iter, time::Instant};

use rullama_gguf::{DType, quant::quantize};

#[path = "../../../crates/engine/src/cpu"]
mod cpu {
    pub(crate) mod simd;
}
#[path = "../../../crates/engine/src/threads.rs"]
mod threads;

use cpu::simd::{Column, gemv};

const ROWS: usize = 2048;
const WIDTH: usize = 8192;
/// Passes per matrix, each shorter than a time slice of a busy machine.
const PASSES: usize = 32;
/// Rows of one call, as the executor makes them.
const TOGETHER: usize = 16;
/// Rows that fit the L2 cache.
const CACHED_ROWS: usize = 32;
/// More than any cache holds.
const MEMORY: usize = 256 << 20;
const FORMATS: [DType; 20] = [
    DType::Q4_K,
    DType::Q5_K,
    DType::Q6_K,
    DType::Q3_K,
    DType::Q2_K,
    DType::Q8_0,
    DType::Q4_0,
    DType::F16,
    DType::IQ4_NL,
    DType::IQ4_XS,
    DType::IQ3_S,
    DType::IQ3_XXS,
    DType::IQ2_S,
    DType::IQ2_XS,
    DType::IQ2_XXS,
    DType::IQ1_S,
    DType::IQ1_M,
    DType::TQ2_0,
    DType::TQ1_0,
    DType::BF16,
];
const COLUMNS: [usize; 3] = [1, 4, 8];

fn noise(count: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / 2_147_483_648.0 - 1.0
    };
    (0..count).map(next).collect()
}

/// Matrices of random weights.
fn matrices(dtype: DType) -> Vec<Vec<u8>> {
    let row_bytes = WIDTH / dtype.block_elements() * dtype.block_bytes();
    let few = match quantize(dtype, &noise(8 * WIDTH)) {
        Ok(rows) => rows,
        // Formats without an encoder: any bytes, with block scales that are finite.
        Err(_) => (0..8 * row_bytes).map(|i| (i * 37 % 59) as u8).collect(),
    };
    let matrix: Vec<u8> = few.iter().copied().cycle().take(ROWS * row_bytes).collect();
    vec![matrix; MEMORY / (ROWS * row_bytes)]
}

/// Bytes per nanosecond of the fastest pass over some rows of a matrix.
fn best<'a>(passes: impl Iterator<Item = &'a [u8]>, mut pass: impl FnMut(&[u8])) -> f64 {
    let mut most = 0.0_f64;
    for rows in passes {
        let start = Instant::now();
        pass(rows);
        most = most.max(rows.len() as f64 / start.elapsed().as_nanos() as f64);
    }
    most
}

fn main() {
    let x: Vec<Vec<f32>> = (0..8).map(|_| noise(WIDTH)).collect();
    println!("GB/s of weights, {ROWS} × {WIDTH}, one thread");
    println!(
        "{:8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>10}",
        "", "read", "cached", "1 column", "4", "8", "prepare µs"
    );
    let named: Vec<String> = std::env::args().skip(1).collect();
    for dtype in FORMATS
        .into_iter()
        .filter(|dtype| named.is_empty() || named.iter().any(|name| name == dtype.name()))
    {
        let matrices = matrices(dtype);
        let row_bytes = matrices[0].len() / ROWS;
        let passes =
            || matrices.iter().flat_map(|matrix| matrix.chunks_exact(matrix.len() / PASSES));
        let read = best(passes(), |rows| {
            let words = rows.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
            black_box(words.fold(0, u64::wrapping_add));
        });
        let columns: Vec<_> = x.iter().map(|x| Column::new(dtype, x)).collect();
        let multiply = |count: usize, rows: &[u8]| {
            let (mut out, mut decoded) = ([0.0; 8 * TOGETHER], Vec::new());
            let rows: Vec<&[u8]> = rows.chunks_exact(row_bytes).collect();
            for rows in rows.chunks(TOGETHER) {
                let out = &mut out[..rows.len() * count];
                gemv(dtype, rows, &columns[..count], &mut decoded, out);
                black_box(out);
            }
        };
        // Once per matmul, whatever its number of rows.
        let prepare = (0..2000).map(|_| {
            let start = Instant::now();
            drop(black_box(Column::new(dtype, &x[0])));
            start.elapsed()
        });
        let prepare = prepare.min().unwrap_or_default();
        let few = &matrices[0][..CACHED_ROWS * row_bytes];
        let cached = best(iter::repeat_n(few, 2000), |rows| multiply(1, rows));
        let rates = COLUMNS.map(|count| best(passes(), |rows| multiply(count, rows)));
        print!("{:8} {:8.1} {:8.1}", dtype.name(), read, cached);
        rates.iter().for_each(|rate| print!(" {rate:8.1}"));
        println!(" {:10.1}", prepare.as_nanos() as f64 / 1e3);
    }
}
