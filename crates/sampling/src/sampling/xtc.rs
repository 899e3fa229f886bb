//! XTC (exclude top choices): with some probability drops all tokens above a threshold except the least likely of them.

use super::{Candidates, softmax::Softmax};

/// Parameters of XTC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Xtc {
    /// Probability per token that it is applied; 0 = off.
    pub probability: f32,
    /// Tokens at least this likely are top choices; above 0.5 = off.
    pub threshold: f32,
}

impl Xtc {
    /// Whether it is never applied.
    pub fn is_off(&self) -> bool {
        self.probability <= 0.0 || self.threshold > 0.5
    }
}

/// Applied if `uniform` is at most the probability. `uniform` is called only if XTC is on and at least two
/// candidates are left.
pub fn apply(candidates: &mut Candidates, xtc: &Xtc, uniform: impl FnOnce() -> f32) {
    if xtc.is_off() || candidates.len() < 2 || uniform() > xtc.probability {
        return;
    }
    candidates.sort();
    let softmax = Softmax::of(candidates.as_slice());
    let threshold = f64::from(xtc.threshold);
    let top_choices =
        candidates.as_slice().iter().take_while(|c| softmax.p(c.logit) >= threshold).count();
    candidates.drop_first(top_choices.saturating_sub(1));
}
