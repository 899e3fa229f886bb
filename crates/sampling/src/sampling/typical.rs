//! Locally typical: keeps the tokens whose surprise is nearest to the entropy, `|−ln p − H|` ascending, until
//! their probabilities sum to more than `typical_p`.

use super::{Candidates, candidates::Order, softmax::Softmax};

/// Keeps the shortest typical prefix with a cumulative probability above `typical_p`; `typical_p ≥ 1` = off.
pub fn apply(candidates: &mut Candidates, typical_p: f32) {
    if typical_p >= 1.0 || candidates.is_empty() {
        return;
    }
    candidates.sort();
    let softmax = Softmax::of(candidates.as_slice());
    let entropy = softmax.entropy(candidates.as_slice());
    let mut by_distance: Vec<_> = candidates
        .as_slice()
        .iter()
        .map(|candidate| ((-softmax.ln_p(candidate.logit) - entropy).abs(), *candidate))
        .collect();
    // Stable: candidates at the same distance keep the order of their logits.
    by_distance.sort_by(|(a, _), (b, _)| a.total_cmp(b));

    let mut sum = 0.0;
    let mut kept = Vec::new();
    for (_, candidate) in by_distance {
        sum += softmax.p(candidate.logit);
        kept.push(candidate);
        if sum > f64::from(typical_p) {
            break;
        }
    }
    candidates.replace(kept, Order::Typical);
}
