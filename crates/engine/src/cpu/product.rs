//! Products of rows of a weight with columns: each row is decoded once for all columns it meets, rows are shared among cores.

use std::ops::Range;

use super::Weight;
use crate::threads::for_pieces;

/// Rows decoded together: a column that was loaded meets all of them.
const BLOCK: usize = 4;
/// Sums kept apart, so that a compiler can put them into the lanes of a register.
const LANES: usize = 8;
/// Decoding a number is about as much work as this many multiplications.
const DECODING: usize = 4;

/// Columns that meet the same rows of a weight.
#[derive(Debug)]
pub(crate) struct Meeting<'a> {
    /// First of the rows.
    pub(crate) first_row: usize,
    /// Each column with its place in the result.
    pub(crate) columns: Vec<(usize, &'a [f32])>,
}

/// `y[place, r] = W[first_row + r] · column` for every column of every meeting; places that no column has become zeros.
pub(crate) fn products(weight: &Weight, rows: usize, meetings: &[Meeting<'_>], y: &mut [f32]) {
    if rows == 0 || y.is_empty() {
        return;
    }
    let (width, places) = (weight.shape.width(), y.len() / rows);
    let met = meetings.iter().map(|meeting| (meeting.columns.len() + DECODING) as u64).sum::<u64>();
    let work = |decoded: &mut Vec<f32>, block: usize, out: &mut [f32]| {
        out.fill(0.0);
        let count = out.len() / places;
        let decoded = &mut decoded[..count * width];
        for meeting in meetings {
            let first = meeting.first_row + block * BLOCK;
            decode(weight, first..first + count, decoded);
            for (place, column) in &meeting.columns {
                dots(decoded, column, &mut out[place * count..(place + 1) * count]);
            }
        }
    };
    let (scratch, operations) = (|| vec![0.0; BLOCK * width], (rows * width) as u64 * met);
    if places == 1 {
        return for_pieces(y, BLOCK, operations, scratch, work);
    }
    // Rows are shared among cores, so what a core makes is all columns of a few rows.
    let mut blocks = vec![0.0; y.len()];
    for_pieces(&mut blocks, BLOCK * places, operations, scratch, work);
    for (block, numbers) in blocks.chunks(BLOCK * places).enumerate() {
        let count = numbers.len() / places;
        for (place, numbers) in numbers.chunks_exact(count).enumerate() {
            y[place * rows + block * BLOCK..][..count].copy_from_slice(numbers);
        }
    }
}

/// `Σ a · b`
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let [mut sum] = dot_lanes([a], b);
    let whole = a.len() / LANES * LANES;
    sum += a[whole..].iter().zip(&b[whole..]).map(|(a, b)| a * b).sum::<f32>();
    sum
}

/// `sum += factor · numbers`
pub(crate) fn add_scaled(sum: &mut [f32], factor: f32, numbers: &[f32]) {
    sum.iter_mut().zip(numbers).for_each(|(sum, x)| *sum += factor * x);
}

fn decode(weight: &Weight, rows: Range<usize>, out: &mut [f32]) {
    for (row, out) in rows.zip(out.chunks_exact_mut(weight.shape.width())) {
        weight.row(row, out);
    }
}

/// A column with each of the decoded rows.
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

/// `Σ row · column` for several rows at once, over the whole groups of [`LANES`].
fn dot_lanes<const ROWS: usize>(rows: [&[f32]; ROWS], column: &[f32]) -> [f32; ROWS] {
    let column = column.as_chunks::<LANES>().0;
    let rows = rows.map(|row| &row.as_chunks::<LANES>().0[..column.len()]);
    let mut sums = [[0.0; LANES]; ROWS];
    for (i, x) in column.iter().enumerate() {
        for (row, sums) in rows.iter().zip(&mut sums) {
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum += row[i][lane] * x[lane];
            }
        }
    }
    sums.map(|sums| sums.iter().sum())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rullama_gguf::DType;

    use super::{Meeting, Weight, dot, products};

    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7 + seed * 5) % 11) as f32 - 5.0).collect()
    }

    /// Small whole numbers: sums are exact in any order.
    fn plain_dot(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// Two groups of rows, whose columns take turns; the last place has none.
    fn check(rows: usize, width: usize, columns: usize) {
        let all = numbers(2 * rows * width, 1);
        let bytes = Bytes::from_iter(all.iter().flat_map(|x| x.to_le_bytes()));
        let weight = Weight::new(DType::F32, [2 * rows, width], bytes);
        let x: Vec<Vec<f32>> = (0..columns).map(|i| numbers(width, i)).collect();
        let meetings = [0, 1].map(|group| Meeting {
            first_row: group * rows,
            columns: (group..columns).step_by(2).map(|i| (i, x[i].as_slice())).collect(),
        });
        let mut y = vec![f32::NAN; (columns + 1) * rows];
        products(&weight, rows, &meetings, &mut y);
        for (i, x) in x.iter().enumerate() {
            for r in 0..rows {
                let row = &all[((i % 2) * rows + r) * width..][..width];
                assert_eq!(y[i * rows + r], plain_dot(row, x), "column {i}, row {r} of {rows}");
            }
        }
        assert!(y[columns * rows..].iter().all(|y| *y == 0.0));
    }

    #[test]
    fn columns_meet_their_rows() {
        for (rows, width, columns) in
            [(1, 1, 1), (3, 7, 2), (4, 8, 1), (5, 17, 3), (257, 33, 0), (130, 257, 9)]
        {
            check(rows, width, columns);
        }
    }

    #[test]
    fn dots_of_any_length() {
        for len in 0..40 {
            let (a, b) = (numbers(len, 3), numbers(len, 4));
            assert_eq!(dot(&a, &b), plain_dot(&a, &b), "{len}");
        }
    }
}
