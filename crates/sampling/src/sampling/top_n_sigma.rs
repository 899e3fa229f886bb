//! Top n sigma: drops logits below `max − n·σ`, σ being the standard deviation over all candidates.

use super::Candidates;

/// Drops logits more than `n` standard deviations below the maximum; `n ≤ 0` = off.
pub fn apply(candidates: &mut Candidates, n: f32) {
    let Some(best) = candidates.best() else { return };
    if n <= 0.0 {
        return;
    }
    let threshold = f64::from(best.logit) - f64::from(n) * standard_deviation(candidates);
    candidates.retain(|candidate| f64::from(candidate.logit) >= threshold);
}

/// Population standard deviation.
fn standard_deviation(candidates: &Candidates) -> f64 {
    let count = candidates.len() as f64;
    let logits = || candidates.as_slice().iter().map(|candidate| f64::from(candidate.logit));
    let mean = logits().sum::<f64>() / count;
    let variance = logits().map(|logit| (logit - mean) * (logit - mean)).sum::<f64>() / count;
    variance.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigma_of_the_worked_example() {
        let candidates = Candidates::from_logits(&[3.0, 2.5, 1.0, 0.0, -1.0, -2.0]);
        assert!((standard_deviation(&candidates) - 1.789243).abs() < 1e-6);
    }
}
