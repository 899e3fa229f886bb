//! Temperature: `l / t`; and dynamic temperature, which follows the entropy:
//! `t = t_min + (t_max − t_min) · (H / H_max)^exponent`.

use super::{Candidates, softmax::Softmax};

/// A temperature that follows the entropy of the candidates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DynamicTemperature {
    /// Middle of the range.
    pub temperature: f32,
    /// Half the width of the range, which is clamped at 0.
    pub range: f32,
    /// Exponent of the normalised entropy.
    pub exponent: f32,
}

/// Divides the logits by `temperature`; `≤ 0` keeps only the best candidate. Keeps the order.
pub fn apply(candidates: &mut Candidates, temperature: f32) {
    let Some(best) = candidates.best() else { return };
    // The best logit overflows: the other candidates have weight 0.
    if temperature <= 0.0 || !(best.logit / temperature).is_finite() {
        candidates.retain(|candidate| candidate.id == best.id);
        return;
    }
    candidates.map_logits(|logit| super::finite(logit / temperature));
}

/// Applies the temperature for the candidates' entropy and sorts them. Fewer than two candidates are unchanged.
pub fn apply_dynamic(candidates: &mut Candidates, dynamic: &DynamicTemperature) {
    if candidates.len() >= 2 {
        candidates.sort();
        apply(candidates, dynamic.temperature_for(candidates));
    }
}

impl DynamicTemperature {
    /// The temperature for these candidates, of which there are at least two.
    pub fn temperature_for(&self, candidates: &Candidates) -> f32 {
        let (middle, range) = (f64::from(self.temperature), f64::from(self.range));
        let (coldest, hottest) = ((middle - range).max(0.0), middle + range);
        let entropy = Softmax::of(candidates.as_slice()).entropy(candidates.as_slice());
        let max_entropy = libm::log(candidates.len() as f64);
        let share = libm::pow(entropy / max_entropy, f64::from(self.exponent));
        (coldest + (hottest - coldest) * share) as f32
    }
}
