//! The draw: inverse of the cumulative distribution over the candidates in their order.

use super::{Candidates, softmax::weight};

/// The first candidate whose running sum of weights reaches `uniform` times their total, with its probability;
/// `None` without candidates. `uniform` is in [0, 1).
pub fn draw(candidates: &Candidates, uniform: f64) -> Option<(u32, f64)> {
    let max = candidates.best()?.logit;
    let weights: Vec<f64> =
        candidates.as_slice().iter().map(|c| f64::from(weight(c.logit, max))).collect();
    let total: f64 = weights.iter().sum();
    let goal = uniform * total;
    let mut sum = 0.0;
    candidates.as_slice().iter().zip(&weights).find_map(|(candidate, weight)| {
        sum += weight;
        // Without the second condition a uniform of 0 could choose a token of weight 0.
        (sum >= goal && *weight > 0.0).then_some((candidate.id, weight / total))
    })
}
