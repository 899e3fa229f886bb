//! Dot products and scaled sums of rows of numbers.

/// Independent sums, so that a compiler can put them into the lanes of a register.
pub(crate) const LANES: usize = 8;

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

/// `Σ row · column` for several rows at once, over the whole groups of [`LANES`].
pub(crate) fn dot_lanes<const ROWS: usize>(rows: [&[f32]; ROWS], column: &[f32]) -> [f32; ROWS] {
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
    use super::dot;

    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7 + seed * 5) % 11) as f32 - 5.0).collect()
    }

    /// Small whole numbers: sums are exact in any order.
    fn plain_dot(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn dots_of_any_length() {
        for len in 0..40 {
            let (a, b) = (numbers(len, 3), numbers(len, 4));
            assert_eq!(dot(&a, &b), plain_dot(&a, &b), "{len}");
        }
    }
}
