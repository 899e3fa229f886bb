//! Dot products and scaled sums of rows.

use super::{
    Kernel,
    lanes::{Lanes, WIDTH},
    run,
};

/// The two vectors of a unit.
#[inline(always)]
pub(super) fn halves<L: Lanes>(lanes: L, unit: &[f32; 32]) -> [L::Floats; 2] {
    let (first, second) = unit.split_at(WIDTH);
    let vector = |half: &[f32]| lanes.load(half.first_chunk().expect("half a unit"));
    [vector(first), vector(second)]
}

/// `Σ a · b`
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    run(Dot(a, b))
}

struct Dot<'a>(&'a [f32], &'a [f32]);

impl Kernel for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f32 {
        dot_in(lanes, self.0, self.1)
    }
}

/// [`dot`] inside of a kernel.
#[inline(always)]
pub(crate) fn dot_in<L: Lanes>(lanes: L, a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<32>();
    let (b, b_rest) = b.as_chunks::<32>();
    let mut sums = [lanes.splat(0.0); 2];
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (halves(lanes, a), halves(lanes, b));
        sums = [lanes.fma(a[0], b[0], sums[0]), lanes.fma(a[1], b[1], sums[1])];
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    lanes.sum(lanes.add(sums[0], sums[1])) + rest
}

/// `sum += factor · row`
pub(crate) fn add_scaled(sum: &mut [f32], factor: f32, row: &[f32]) {
    run(AddScaled(sum, factor, row));
}

struct AddScaled<'a>(&'a mut [f32], f32, &'a [f32]);

impl Kernel for AddScaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        add_scaled_in(lanes, self.0, self.1, self.2);
    }
}

/// [`add_scaled`] inside of a kernel.
#[inline(always)]
pub(crate) fn add_scaled_in<L: Lanes>(lanes: L, sum: &mut [f32], factor: f32, row: &[f32]) {
    let (sum, sum_rest) = sum.as_chunks_mut::<WIDTH>();
    let (row, row_rest) = row.as_chunks::<WIDTH>();
    let splat = lanes.splat(factor);
    for (sum, row) in sum.iter_mut().zip(row) {
        lanes.store(lanes.fma(splat, lanes.load(row), lanes.load(sum)), sum);
    }
    for (sum, x) in sum_rest.iter_mut().zip(row_rest) {
        *sum += factor * x;
    }
}

#[cfg(test)]
mod tests {
    use super::{add_scaled, dot};

    fn integers(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7 + seed * 5) % 11) as f32 - 5.0).collect()
    }

    /// The definition; sums of small integers are exact in any order.
    fn plain_dot(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn dots_of_any_length_are_exact() {
        for len in 0..80 {
            let (a, b) = (integers(len, 3), integers(len, 4));
            assert_eq!(dot(&a, &b), plain_dot(&a, &b), "{len}");
        }
    }

    #[test]
    fn scaled_sums_of_any_length_are_exact() {
        for len in 0..80 {
            let (mut sum, row) = (integers(len, 3), integers(len, 4));
            let wanted: Vec<f32> = sum.iter().zip(&row).map(|(sum, x)| sum + 3.0 * x).collect();
            add_scaled(&mut sum, 3.0, &row);
            assert_eq!(sum, wanted, "{len}");
        }
    }
}
