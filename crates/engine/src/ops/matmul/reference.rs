//! CPU reference of matmuls with a weight: each row is decoded once for all columns, rows are distributed over cores.

use std::ops::Range;

use crate::{
    cpu::{LANES, Weight, dot, dot_lanes},
    threads::for_pieces,
};

/// Rows decoded together, so that a loaded column is multiplied with all of them.
const BLOCK: usize = 4;
/// Cost of decoding an element, in multiplications.
const DECODING: usize = 4;

/// Columns that are multiplied with the same rows of a weight.
#[derive(Debug)]
pub(crate) struct RowBatch<'a> {
    /// The first row.
    pub(crate) first_row: usize,
    /// Each column with its index in the result.
    pub(crate) columns: Vec<(usize, &'a [f32])>,
}

/// `y[index, r] = W[first_row + r] · column` for every column of every batch; results without a column are zero.
pub(crate) fn matmul_rows(weight: &Weight, rows: usize, batches: &[RowBatch<'_>], y: &mut [f32]) {
    if rows == 0 || y.is_empty() {
        return;
    }
    let (width, results) = (weight.shape.width(), y.len() / rows);
    let work_each =
        batches.iter().map(|batch| (batch.columns.len() + DECODING) as u64).sum::<u64>();
    let work = |decoded: &mut Vec<f32>, block: usize, out: &mut [f32]| {
        out.fill(0.0);
        let count = out.len() / results;
        let decoded = &mut decoded[..count * width];
        for batch in batches {
            let first = batch.first_row + block * BLOCK;
            decode(weight, first..first + count, decoded);
            for (index, column) in &batch.columns {
                dots(decoded, column, &mut out[index * count..(index + 1) * count]);
            }
        }
    };
    let (scratch, operations) = (|| vec![0.0; BLOCK * width], (rows * width) as u64 * work_each);
    if results == 1 {
        return for_pieces(y, BLOCK, operations, scratch, work);
    }
    // A core computes all columns of a few rows.
    let mut blocks = vec![0.0; y.len()];
    for_pieces(&mut blocks, BLOCK * results, operations, scratch, work);
    for (block, values) in blocks.chunks(BLOCK * results).enumerate() {
        let count = values.len() / results;
        for (index, values) in values.chunks_exact(count).enumerate() {
            y[index * rows + block * BLOCK..][..count].copy_from_slice(values);
        }
    }
}

fn decode(weight: &Weight, rows: Range<usize>, out: &mut [f32]) {
    for (row, out) in rows.zip(out.chunks_exact_mut(weight.shape.width())) {
        weight.row(row, out);
    }
}

/// Dot products of a column with each of the decoded rows.
fn dots(rows: &[f32], column: &[f32], out: &mut [f32]) {
    let width = column.len();
    let mut all = rows.chunks_exact(width);
    let (Ok(out), Some(a), Some(b), Some(c), Some(d)) =
        (<&mut [f32; BLOCK]>::try_from(&mut *out), all.next(), all.next(), all.next(), all.next())
    else {
        let rows = rows.chunks_exact(width);
        return out.iter_mut().zip(rows).for_each(|(out, row)| *out = dot(row, column));
    };
    *out = dot_lanes([a, b, c, d], column);
    let whole = width / LANES * LANES;
    for (out, row) in out.iter_mut().zip([a, b, c, d]) {
        let rest = row[whole..].iter().zip(&column[whole..]);
        *out += rest.map(|(w, x)| w * x).sum::<f32>();
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
    fn check(rows: usize, width: usize, columns: usize) {
        let all = integers(2 * rows * width, 1);
        let bytes = Bytes::from_iter(all.iter().flat_map(|x| x.to_le_bytes()));
        let weight = Weight::new(DType::F32, [2 * rows, width], bytes);
        let x: Vec<Vec<f32>> = (0..columns).map(|i| integers(width, i)).collect();
        let batches = [0, 1].map(|group| RowBatch {
            first_row: group * rows,
            columns: (group..columns).step_by(2).map(|i| (i, x[i].as_slice())).collect(),
        });
        let mut y = vec![f32::NAN; (columns + 1) * rows];
        matmul_rows(&weight, rows, &batches, &mut y);
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
        for (rows, width, columns) in
            [(1, 1, 1), (3, 7, 2), (4, 8, 1), (5, 17, 3), (257, 33, 0), (130, 257, 9)]
        {
            check(rows, width, columns);
        }
    }
}
