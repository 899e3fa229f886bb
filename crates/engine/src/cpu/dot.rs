//! Dot products and scaled sums of rows.

/// Independent sums, so that the compiler can vectorise.
pub(crate) const LANES: usize = 8;

/// `Σ a · b`
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let [mut sum] = dot_lanes([a], b);
    let whole = a.len() / LANES * LANES;
    sum += a[whole..].iter().zip(&b[whole..]).map(|(a, b)| a * b).sum::<f32>();
    sum
}

/// `sum += factor · row`
pub(crate) fn add_scaled(sum: &mut [f32], factor: f32, row: &[f32]) {
    sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += factor * x);
}

/// `Σ row · column` for several rows at once, over whole groups of [`LANES`].
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

    fn integers(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7 + seed * 5) % 11) as f32 - 5.0).collect()
    }

    /// The definition; sums of small integers are exact in any order.
    fn plain_dot(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn dots_of_any_length_are_exact() {
        for len in 0..40 {
            let (a, b) = (integers(len, 3), integers(len, 4));
            assert_eq!(dot(&a, &b), plain_dot(&a, &b), "{len}");
        }
    }
}
