//! How far a kernel may be from its reference, and why.
//!
//! A sum of `k` products of mixed sign grows like √k, and so does each partial sum that is rounded on the way. Its rounding errors
//! add up to about `u · √(k/2)` of the result's own size (`u` = half a unit in the last place), in any order of addition. Both
//! sides round; five deviations cover the largest of many thousand results. So the bound is
//! `u · (c + 4 · √k) · (|y| + rms(y))`, where `c` counts the roundings of single steps, and the size of the whole tensor
//! stands in for results that cancel.
//!
//! Where kernels round the factors of products to halves before they multiply, each product is off by two roundings of at most
//! `v = 2^-11`, together 0.57 `v` in the root mean square (a rounding error is evenly spread over a unit in the last place, which is
//! 0.4 `v` of the numbers of one binade). The errors of a sum are independent, so they grow like the sum itself: 0.57 `v` of the
//! size of the results, however many terms there are. Seven deviations make the bound `4 v · (|y| + rms(y))` on top.
//!
//! Where kernels take x as int8 hi/lo pairs, a number is rounded to a part in 32,639 of the largest of its piece. That error is
//! evenly spread, 1 / (32639 · √12) of the largest in the root mean square, and the largest of 32 or 64 numbers is at most about three times their
//! size: 2.7e-5 of the size of the results, again however many terms there are. Eight deviations make the bound; where GeGLU writes int8 pairs,
//! pieces are 16 numbers, the largest of which is at most four times their size, and six of those do.
//!
//! Where sums are scores of attention, their errors are the relative errors of the weights made of them: for scores of size `s`, all
//! of the above counts `1 + s` times.

/// Half a unit in the last place of f32, relative.
const F32: f32 = 1.0 / (1 << 24) as f32;

/// What may go wrong with each result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Products in each sum.
    pub terms: usize,
    /// Roundings of single steps, in half units: WGSL allows 2 for a division, 4 for a root, 3 + 2·|x| for an exponential.
    pub steps: f32,
    /// Half a unit in the last place of the coarsest number on the way.
    pub unit: f32,
    /// Size of the numbers whose differences the results are, where all of them may cancel.
    pub cancelling: f32,
    /// What rounding the factors of products adds, relative.
    pub factors: f32,
    /// Size of the scores whose exponentials weigh the results; 0 where there are none.
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

    /// With numbers rounded to half precision on the way, differently on the two sides.
    #[must_use]
    pub fn half(self) -> Self {
        Self { unit: 1.0 / (1 << 12) as f32, ..self }
    }

    /// With the factors of products rounded to halves, by the device alone.
    #[must_use]
    pub fn half_factors(self) -> Self {
        Self { factors: 4.0 / (1 << 11) as f32, ..self }
    }

    /// With activations as int8 pairs, by the device alone.
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

    /// Differences of numbers of about this size, which may cancel altogether.
    #[must_use]
    pub fn cancelling(self, size: f32) -> Self {
        Self { cancelling: size, ..self }
    }

    /// The first result that is too far off: its index and the bound it broke. NaN is always too far.
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
    fn near_and_far() {
        let tolerance = Tolerance::ARITHMETIC.terms(100);
        assert_eq!(tolerance.broken_at(&[1.0, 2.0], &[1.0, 2.0]), None);
        assert_eq!(tolerance.broken_at(&[1.0, 2.000_005], &[1.0, 2.0]), None);
        assert_eq!(tolerance.broken_at(&[1.0, 2.001], &[1.0, 2.0]).map(|(at, _)| at), Some(1));
        assert!(tolerance.broken_at(&[f32::NAN], &[1.0]).is_some());
        assert!(tolerance.broken_at(&[f32::INFINITY], &[1.0]).is_some());
        assert_eq!(tolerance.broken_at(&[f32::NEG_INFINITY], &[f32::NEG_INFINITY]), None);
        let halves = tolerance.half_factors();
        assert_eq!(halves.broken_at(&[1.0, 2.003], &[1.0, 2.0]), None);
        assert_eq!(halves.broken_at(&[1.0, 2.01], &[1.0, 2.0]).map(|(at, _)| at), Some(1));
        let int8 = tolerance.int8_factors();
        assert_eq!(int8.broken_at(&[1.0, 2.0005], &[1.0, 2.0]), None);
        assert_eq!(int8.broken_at(&[1.0, 2.001], &[1.0, 2.0]).map(|(at, _)| at), Some(1));
        // What cancels is as exact as what it was made of.
        assert!(tolerance.broken_at(&[1e-9], &[0.0]).is_some());
        assert_eq!(tolerance.cancelling(1.0).broken_at(&[1e-9], &[0.0]), None);
        // An infinity that is wanted makes nothing else acceptable.
        let want = [f32::NEG_INFINITY, 1.0];
        assert_eq!(tolerance.broken_at(&[0.0, 1.0], &want).map(|(at, _)| at), Some(0));
        assert_eq!(tolerance.broken_at(&[want[0], 2.0], &want).map(|(at, _)| at), Some(1));
    }
}
