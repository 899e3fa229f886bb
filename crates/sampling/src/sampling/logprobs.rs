//! Log-probabilities of the raw logits, before any bias, penalty or filter.

use serde::{Deserialize, Serialize};

use super::{Candidate, Candidates};

/// A token and the natural logarithm of its probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    /// The token.
    pub id: u32,
    /// `ln p`; the lowest finite value for a token of probability 0, because JSON has no infinity.
    pub logprob: f32,
}

/// Log-probabilities at one position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Logprobs {
    /// The sampled token.
    pub chosen: TokenLogprob,
    /// The most likely tokens, best first; the chosen one may be among them.
    pub top: Vec<TokenLogprob>,
}

/// Log-probabilities of the chosen token and of the `top` most likely ones.
pub fn logprobs(logits: &[f32], chosen: u32, top: usize) -> Logprobs {
    let (max, ln_sum) = log_sum_exp(logits);
    let of = |candidate: &Candidate| TokenLogprob {
        id: candidate.id,
        logprob: (f64::from(candidate.logit) - max - ln_sum).max(f64::from(f32::MIN)) as f32,
    };
    let logit = usize::try_from(chosen).ok().and_then(|id| logits.get(id)).copied();
    let possible = logit.filter(|logit| *logit > f32::NEG_INFINITY);
    let chosen = match possible {
        Some(logit) => of(&Candidate { id: chosen, logit: logit.min(f32::MAX) }),
        None => TokenLogprob { id: chosen, logprob: f32::MIN },
    };
    let best = Candidates::largest_of(logits, top);
    Logprobs { chosen, top: best.as_slice().iter().map(of).collect() }
}

/// The maximum `m` and `ln Σ e^(l − m)`, whose sum is `ln Σ e^l`; kept separate to avoid overflow and rounding.
/// NaN counts as −∞.
fn log_sum_exp(logits: &[f32]) -> (f64, f64) {
    let usable = || logits.iter().filter(|l| **l > f32::NEG_INFINITY).map(|l| l.min(f32::MAX));
    let max = f64::from(usable().fold(f32::MIN, f32::max));
    let sum: f64 = usable().map(|logit| libm::exp(f64::from(logit) - max)).sum();
    (max, libm::log(sum))
}
