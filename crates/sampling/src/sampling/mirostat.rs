//! Mirostat: truncates so that the surprise of the drawn tokens stays near a target `τ`.

use super::{Candidates, softmax::Softmax};

/// Number of best tokens from which version 1 estimates the Zipf exponent.
const ZIPF_TOKENS: usize = 100;

/// Mirostat's running limit and target, in bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mirostat {
    /// Target surprise τ.
    pub tau: f32,
    /// Learning rate η.
    pub eta: f32,
    /// Running limit μ.
    pub mu: f32,
}

impl Mirostat {
    /// Starts with `μ = 2τ`.
    pub fn new(tau: f32, eta: f32) -> Self {
        Self { tau, eta, mu: super::finite(2.0 * tau) }
    }

    /// Version 1: keeps the `k` best tokens, `k = ((ε·2^μ) / (1 − N^−ε))^(1/s)` with the Zipf exponent `s`,
    /// `ε = s − 1` and the vocabulary size `N`.
    pub fn truncate_1(&self, candidates: &mut Candidates, vocabulary: usize) {
        candidates.sort();
        if candidates.len() >= 2 {
            candidates.keep_largest(self.k(zipf_exponent(candidates), vocabulary));
        }
    }

    /// Version 2: drops tokens with a surprise `−log2 p` above μ, never the best one.
    pub fn truncate_2(&self, candidates: &mut Candidates) {
        let softmax = Softmax::of(candidates.as_slice());
        let limit = -f64::from(self.mu) * std::f64::consts::LN_2;
        candidates.keep_prefix(|sorted| {
            let too_surprising = sorted.iter().position(|c| softmax.ln_p(c.logit) < limit)?;
            Some(too_surprising.max(1))
        });
    }

    /// Updates the limit after a token of this probability: `μ −= η(−log2 p − τ)`.
    pub fn learn(&mut self, probability: f64) {
        let surprise = -libm::log2(probability) as f32;
        self.mu = super::finite(self.mu - self.eta * (surprise - self.tau));
    }

    /// Between 1 and the vocabulary size; the formula overflows for small exponents.
    fn k(&self, s: f64, vocabulary: usize) -> usize {
        let epsilon = s - 1.0;
        let ln_n = libm::log(vocabulary as f64);
        let limit = libm::exp2(f64::from(self.mu));
        // The limit for ε → 0 is 2^μ / ln N; expm1 keeps the quotient exact near it.
        let base = match epsilon {
            0.0 => limit / ln_n,
            _ => limit * epsilon / -libm::expm1(-epsilon * ln_n),
        };
        let k = libm::pow(base, 1.0 / s);
        if k.is_nan() || k >= vocabulary as f64 { vocabulary } else { (k as usize).max(1) }
    }
}

/// Least squares over neighbours in rank: `s = Σ tᵢbᵢ / Σ tᵢ²`, `tᵢ = ln((i+2)/(i+1))`, `bᵢ = ln(pᵢ/pᵢ₊₁)`.
fn zipf_exponent(sorted: &Candidates) -> f64 {
    let head = &sorted.as_slice()[..sorted.len().min(ZIPF_TOKENS)];
    let (mut products, mut squares) = (0.0, 0.0);
    for (rank, pair) in (1u32..).zip(head.windows(2)) {
        let step = libm::log(f64::from(rank + 1) / f64::from(rank));
        products += step * (f64::from(pair[0].logit) - f64::from(pair[1].logit));
        squares += step * step;
    }
    products / squares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_k(mu: f32, s: f64, vocabulary: usize, expected: usize) {
        let mirostat = Mirostat { tau: 5.0, eta: 0.1, mu };
        assert_eq!(mirostat.k(s, vocabulary), expected, "mu {mu}, s {s}, {vocabulary} tokens");
    }

    #[test]
    fn k_follows_the_formula() {
        // s = 2: k = sqrt(2^μ / (1 − 1/N)).
        check_k(6.0, 2.0, 1000, 8);
        // s = 1: k = 2^μ / ln N = 64 / 6.9078.
        check_k(6.0, 1.0, 1000, 9);
        check_k(6.0, 1.0 + 1e-9, 1000, 9);
        // s = 0.5: k = (0.5 · 8 / (√1024 − 1))², below one.
        check_k(3.0, 0.5, 1024, 1);
        // s = 0.5: k = (0.5 · 1024 / 31)² = 272.7.
        check_k(10.0, 0.5, 1024, 272);
    }

    #[test]
    fn k_is_clamped_where_the_formula_overflows() {
        check_k(10.0, 1e-6, 1000, 1000);
        check_k(10.0, 0.0, 1000, 1000);
        check_k(f32::MAX, 2.0, 1000, 1000);
        check_k(f32::MIN, 2.0, 1000, 1);
        check_k(5.0, f64::INFINITY, 1000, 1);
        check_k(5.0, 2.0, 1, 1);
    }
}
