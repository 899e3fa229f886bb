//! CPU reference of matmuls with a weight, in f32: rows are distributed over cores. A few columns are multiplied with the levels of each row
//! as they are read (GEMV); for more, blocks of rows are decoded (GEMM).

use crate::{
    cpu::{
        Weight,
        simd::{BLOCK_ROWS, Column, GemmScratch, Panels, gemm, gemv},
    },
    threads::for_pieces,
};

/// Most columns of a GEMV where a GEMM is allowed.
const GEMV_COLUMNS: usize = 8;
/// Rows of a GEMV that are one piece of work.
const GEMV_ROWS: usize = 16;

/// Columns that are multiplied with the same rows of a weight.
#[derive(Debug)]
pub(crate) struct RowBatch<'a> {
    /// The first row.
    pub(crate) first_row: usize,
    /// Each column with its index in the result.
    pub(crate) columns: Vec<(usize, &'a [f32])>,
}

/// The columns of a batch in the form their kernel reads.
enum Prepared<'a> {
    Gemv(Vec<Column<'a>>),
    Gemm(Panels),
}

impl<'a> Prepared<'a> {
    /// In batch-invariant passes, all columns take the GEMV, which computes each of them alone.
    fn new(weight: &Weight, batch: &RowBatch<'a>, batch_invariant: bool) -> Self {
        let columns = batch.columns.iter().map(|(_, column)| *column);
        match batch_invariant || batch.columns.len() <= GEMV_COLUMNS {
            true => Self::Gemv(columns.map(|x| Column::new(weight.dtype, x)).collect()),
            false => Self::Gemm(Panels::new(weight.shape.width(), &columns.collect::<Vec<_>>())),
        }
    }
}

/// Memory of one thread.
#[derive(Default)]
struct Scratch {
    decoded: Vec<f32>,
    dots: Vec<f32>,
    gemm: GemmScratch,
}

/// `y[index, r] = W[first_row + r] · column` for every column of every batch; results without a column are zero.
pub(crate) fn matmul_rows(
    weight: &Weight,
    rows: usize,
    (batches, batch_invariant): (&[RowBatch<'_>], bool),
    y: &mut [f32],
) {
    if rows == 0 || y.is_empty() {
        return;
    }
    let (width, results) = (weight.shape.width(), y.len() / rows);
    let prepared: Vec<(&RowBatch<'_>, Prepared<'_>)> = batches
        .iter()
        .map(|batch| (batch, Prepared::new(weight, batch, batch_invariant)))
        .collect();
    let is_gemm = prepared.iter().any(|(_, columns)| matches!(columns, Prepared::Gemm(_)));
    let block_rows = if is_gemm { BLOCK_ROWS } else { GEMV_ROWS };
    let work = |scratch: &mut Scratch, block: usize, out: &mut [f32]| {
        out.fill(0.0);
        for (batch, columns) in &prepared {
            let first = batch.first_row + block * block_rows;
            multiply(weight, first, (batch, columns), scratch, (results, &mut *out));
        }
    };
    let each = batches.iter().map(|batch| (batch.columns.len() + 1) as u64).sum::<u64>();
    let operations = (rows * width) as u64 * each;
    if results == 1 {
        return for_pieces(y, block_rows, operations, Scratch::default, work);
    }
    // A core computes all columns of a few rows.
    let mut blocks = vec![0.0; y.len()];
    for_pieces(&mut blocks, block_rows * results, operations, Scratch::default, work);
    let gather = |(): &mut (), index: usize, y: &mut [f32]| {
        for (y, values) in y.chunks_mut(block_rows).zip(blocks.chunks(block_rows * results)) {
            y.copy_from_slice(&values[index * y.len()..][..y.len()]);
        }
    };
    let moved = y.len() as u64;
    for_pieces(y, rows, moved, || (), gather);
}

/// Multiplies the columns of a batch with the rows from `first` on that `out`, `[results][rows]`, has room for.
fn multiply(
    weight: &Weight,
    first: usize,
    (batch, columns): (&RowBatch<'_>, &Prepared<'_>),
    scratch: &mut Scratch,
    (results, out): (usize, &mut [f32]),
) {
    let count = out.len() / results;
    let mut rows: [&[u8]; BLOCK_ROWS] = [&[]; BLOCK_ROWS];
    for (r, row) in rows[..count].iter_mut().enumerate() {
        *row = weight.row_bytes(first + r);
    }
    let indices = batch.columns.iter().map(|(index, _)| *index).enumerate();
    match columns {
        Prepared::Gemv(columns) => {
            let Scratch { decoded, dots, .. } = scratch;
            dots.resize(count * columns.len(), 0.0);
            gemv(weight.dtype, &rows[..count], columns, decoded, dots);
            for (column, index) in indices {
                for (r, out) in out[index * count..][..count].iter_mut().enumerate() {
                    *out = dots[r * columns.len() + column];
                }
            }
        }
        Prepared::Gemm(panels) => {
            gemm(weight.dtype, &rows[..count], panels, &mut scratch.gemm);
            for (column, index) in indices {
                for (r, out) in out[index * count..][..count].iter_mut().enumerate() {
                    *out = scratch.gemm.result(r, column);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rullama_gguf::DType;

    use super::{RowBatch, Weight, matmul_rows};

    fn integers(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7 + seed * 5) % 11) as f32 - 5.0).collect()
    }

    /// The definition; sums of small integers are exact in any order.
    fn plain_dot(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// Two groups of rows, with columns in turn; the last result has none.
    fn check(rows: usize, width: usize, columns: usize, batch_invariant: bool) {
        let all = integers(2 * rows * width, 1);
        let bytes = Bytes::from_iter(all.iter().flat_map(|x| x.to_le_bytes()));
        let weight = Weight::new(DType::F32, [2 * rows, width], bytes);
        let x: Vec<Vec<f32>> = (0..columns).map(|i| integers(width, i)).collect();
        let batches = [0, 1].map(|group| RowBatch {
            first_row: group * rows,
            columns: (group..columns).step_by(2).map(|i| (i, x[i].as_slice())).collect(),
        });
        let mut y = vec![f32::NAN; (columns + 1) * rows];
        matmul_rows(&weight, rows, (&batches, batch_invariant), &mut y);
        for (i, x) in x.iter().enumerate() {
            for r in 0..rows {
                let row = &all[((i % 2) * rows + r) * width..][..width];
                assert_eq!(y[i * rows + r], plain_dot(row, x), "column {i}, row {r} of {rows}");
            }
        }
        assert!(y[columns * rows..].iter().all(|y| *y == 0.0));
    }

    #[test]
    fn columns_are_multiplied_with_their_rows() {
        for (rows, width, columns) in [
            (1, 1, 1),
            (3, 7, 2),
            (4, 8, 1),
            (5, 17, 3),
            (257, 33, 0),
            (130, 257, 9),
            (33, 300, 40),
        ] {
            check(rows, width, columns, false);
            check(rows, width, columns, true);
        }
    }
}
