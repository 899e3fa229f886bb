//! Tolerances of kernels against their references, derived from rounding errors.
//!
//! A sum of `k` products of mixed sign grows like √k, and so does each partial sum that is rounded on the way. Its rounding errors add up to
//! about `u · √(k/2)` of the result's own size (`u` = half a unit in the last place), in any order of addition. Both sides round; five standard
//! deviations cover the largest of many thousand results. So the bound is `u · (c + 4 · √k) · (|y| + rms(y))`, where `c` counts the roundings
//! of single steps, and the size of the whole tensor stands in for results that cancel.
//!
//! If kernels round the factors of products to f16, each product has two rounding errors of at most `v = 2^-11`, together 0.57 `v` in the root
//! mean square (a rounding error is uniform over a unit in the last place, which is 0.4 `v` of the values of one binade). The errors of a sum
//! are independent, so they grow like the sum itself: 0.57 `v` of the size of the results, for any number of terms. Seven standard deviations
//! make the bound `4 v · (|y| + rms(y))` in addition.
//!
//! If kernels take x as int8 hi/lo pairs, a value is rounded to a part in 32,639 of the largest of its piece. That error is uniform,
//! 1 / (32639 · √12) of the largest in the root mean square, and the largest of 32 or 64 values is at most about three times their size: 2.7e-5
//! of the size of the results, again for any number of terms. Eight standard deviations make the bound; if GeGLU writes int8 pairs, pieces are
//! 16 values, the largest of which is at most four times their size, and the same bound is six standard deviations.
//!
//! If sums are attention scores, their errors are relative errors of the weights computed from them: for scores of size `s`, all of the above
//! counts `1 + s` times.

/// Half a unit in the last place of f32, relative.
const F32: f32 = 1.0 / (1 << 24) as f32;

/// The sources of error of each result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Products in each sum.
    pub terms: usize,
    /// Roundings of single steps, in half ulps: WGSL allows 2 for a division, 4 for a root, 3 + 2·|x| for an exponential.
    pub steps: f32,
    /// Half a unit in the last place of the coarsest intermediate value.
    pub unit: f32,
    /// Size of the values whose differences the results are, if all of them may cancel.
    pub cancelling: f32,
    /// Relative error from rounding the factors of products.
    pub factors: f32,
    /// Size of the scores whose exponentials weight the results; 0 without scores.
    pub scores: f32,
}

impl Tolerance {
    /// Plain arithmetic in f32.
    pub const ARITHMETIC: Self =
        Self { terms: 0, steps: 8.0, unit: F32, cancelling: 0.0, factors: 0.0, scores: 0.0 };
    /// With exponentials of moderate arguments (tanh, softmax).
    pub const EXPONENTIAL: Self =
        Self { terms: 0, steps: 64.0, unit: F32, cancelling: 0.0, factors: 0.0, scores: 0.0 };

    /// Sums of `terms` products.
    #[must_use]
    pub fn terms(self, terms: usize) -> Self {
        Self { terms, ..self }
    }

    /// With intermediate values rounded to f16, differently on the two sides.
    #[must_use]
    pub fn half(self) -> Self {
        Self { unit: 1.0 / (1 << 12) as f32, ..self }
    }

    /// With the factors of products rounded to f16, by the device only.
    #[must_use]
    pub fn half_factors(self) -> Self {
        Self { factors: 4.0 / (1 << 11) as f32, ..self }
    }

    /// With activations as int8 pairs, by the device only.
    #[must_use]
    pub fn int8_factors(self) -> Self {
        let deviation = 3.0 / (32_639.0 * 12.0_f32.sqrt());
        Self { factors: self.factors + 8.0 * deviation, ..self }
    }

    /// Weighted by the exponentials of scores of about this size.
    #[must_use]
    pub fn scores(self, scores: f32) -> Self {
        Self { scores, ..self }
    }

    /// Differences of values of about this size, which may cancel altogether.
    #[must_use]
    pub fn cancelling(self, size: f32) -> Self {
        Self { cancelling: size, ..self }
    }

    /// The first result outside of its bound: its index and the bound. NaN is always outside.
    pub fn broken_at(&self, got: &[f32], want: &[f32]) -> Option<(usize, f32)> {
        let finite = || want.iter().filter(|y| y.is_finite());
        let squares: f32 = finite().map(|y| y * y).sum();
        let size = (squares / finite().count().max(1) as f32).sqrt().max(self.cancelling);
        let rounding = self.unit * (self.steps + 4.0 * (self.terms as f32).sqrt()) + self.factors;
        let factor = rounding * (1.0 + self.scores);
        let bound = |y: f32| factor * (y.abs() + size);
        let close = |(got, want): (&f32, &f32)| {
            got == want || want.is_finite() && (got - want).abs() <= bound(*want)
        };
        let index = got.iter().zip(want).position(|pair| !close(pair))?;
        Some((index, bound(want[index])))
    }
}

#[cfg(test)]
mod tests {
    use super::Tolerance;

    #[test]
    fn errors_are_within_bounds_or_not() {
        let tolerance = Tolerance::ARITHMETIC.terms(100);
        assert_eq!(tolerance.broken_at(&[1.0, 2.0], &[1.0, 2.0]), None);
        assert_eq!(tolerance.broken_at(&[1.0, 2.000_005], &[1.0, 2.0]), None);
        assert_eq!(tolerance.broken_at(&[1.0, 2.001], &[1.0, 2.0]).map(|(at, _)| at), Some(1));
        assert!(tolerance.broken_at(&[f32::NAN], &[1.0]).is_some());
        assert!(tolerance.broken_at(&[f32::INFINITY], &[1.0]).is_some());
        assert_eq!(tolerance.broken_at(&[f32::NEG_INFINITY], &[f32::NEG_INFINITY]), None);
        let f16 = tolerance.half_factors();
        assert_eq!(f16.broken_at(&[1.0, 2.003], &[1.0, 2.0]), None);
        assert_eq!(f16.broken_at(&[1.0, 2.01], &[1.0, 2.0]).map(|(at, _)| at), Some(1));
        let int8 = tolerance.int8_factors();
        assert_eq!(int8.broken_at(&[1.0, 2.0005], &[1.0, 2.0]), None);
        assert_eq!(int8.broken_at(&[1.0, 2.001], &[1.0, 2.0]).map(|(at, _)| at), Some(1));
        // A difference that cancels is as exact as its operands.
        assert!(tolerance.broken_at(&[1e-9], &[0.0]).is_some());
        assert_eq!(tolerance.cancelling(1.0).broken_at(&[1e-9], &[0.0]), None);
        // An expected infinity must not loosen the bound of other results.
        let want = [f32::NEG_INFINITY, 1.0];
        assert_eq!(tolerance.broken_at(&[0.0, 1.0], &want).map(|(at, _)| at), Some(0));
        assert_eq!(tolerance.broken_at(&[want[0], 2.0], &want).map(|(at, _)| at), Some(1));
    }
}
