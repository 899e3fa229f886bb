//! Top p (nucleus): keeps the most likely tokens until their probabilities sum to at least `top_p`.

use super::{Candidates, softmax::Softmax};

/// Keeps the shortest prefix, by logit descending, with a cumulative probability of at least `top_p`;
/// `top_p ≥ 1` = off. The best token is always kept.
pub fn apply(candidates: &mut Candidates, top_p: f32) {
    if top_p >= 1.0 || candidates.is_empty() {
        return;
    }
    let softmax = Softmax::of(candidates.as_slice());
    candidates.keep_prefix(|sorted| {
        let mut sum = 0.0;
        let last = sorted.iter().position(|candidate| {
            sum += softmax.p(candidate.logit);
            sum >= f64::from(top_p)
        })?;
        Some(last + 1)
    });
}
