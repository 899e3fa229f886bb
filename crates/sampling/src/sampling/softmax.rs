//! Probabilities of candidates: weights `e^(l − l_max)` in f32, sums in f64.

use super::Candidate;

/// Maximum and normaliser of a softmax.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Softmax {
    max: f32,
    total: f64,
    ln_total: f64,
}

impl Softmax {
    /// Over candidates in any order; the sum runs in their order.
    pub(crate) fn of(candidates: &[Candidate]) -> Self {
        let max = candidates.iter().map(|c| c.logit).fold(f32::MIN, f32::max);
        let total = candidates.iter().map(|c| f64::from(weight(c.logit, max))).sum();
        Self { max, total, ln_total: libm::log(total) }
    }

    /// Probability of a candidate with this logit.
    pub(crate) fn p(&self, logit: f32) -> f64 {
        f64::from(weight(logit, self.max)) / self.total
    }

    /// Its natural logarithm, finite even where the probability rounds to 0.
    pub(crate) fn ln_p(&self, logit: f32) -> f64 {
        f64::from(logit) - f64::from(self.max) - self.ln_total
    }

    /// `−Σ p ln p` over the candidates it was computed from.
    pub(crate) fn entropy(&self, candidates: &[Candidate]) -> f64 {
        let sum: f64 = candidates.iter().map(|c| self.p(c.logit) * self.ln_p(c.logit)).sum();
        (-sum).max(0.0)
    }
}

/// `e^(logit − max)`, computed in f64 so that the f32 result is the nearest one.
pub(crate) fn weight(logit: f32, max: f32) -> f32 {
    libm::exp(f64::from(logit - max)) as f32
}
