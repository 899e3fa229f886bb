//! Min p: keeps the tokens at least `min_p` times as likely as the best one, `l ≥ l_max + ln(min_p)`.

use super::Candidates;

/// Drops tokens less likely than `min_p` times the best; `min_p ≤ 0` = off. Keeps the order.
pub fn apply(candidates: &mut Candidates, min_p: f32) {
    let Some(best) = candidates.best() else { return };
    if min_p <= 0.0 {
        return;
    }
    let relative = libm::log(f64::from(min_p)) as f32;
    // Not above the maximum, so that the best token is kept for min_p > 1, too.
    let threshold = (best.logit + relative).min(best.logit);
    candidates.retain(|candidate| candidate.logit >= threshold);
}
