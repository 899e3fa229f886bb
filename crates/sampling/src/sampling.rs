//! Sampling a token from logits on the CPU, bit-identical on every target.
//!
//! The chain, in this order: logit bias, penalties, DRY, top n sigma, top k, typical, top p, min p, XTC,
//! temperature, draw. The first three change logits of single tokens; each of the others filters the
//! [`Candidates`] that the previous one kept. Mirostat replaces everything between the biases and the draw.

pub mod bias;
mod breakers;
mod candidates;
pub mod draw;
pub mod dry;
mod error;
mod generator;
mod history;
pub mod logprobs;
pub mod min_p;
pub mod mirostat;
pub mod penalties;
mod sampler;
mod softmax;
mod state;
pub mod temperature;
pub mod top_k;
pub mod top_n_sigma;
pub mod top_p;
pub mod typical;
pub mod xtc;

pub use breakers::SequenceBreakers;
pub use candidates::{Candidate, Candidates, Order};
pub use error::SamplingError;
pub use sampler::{Sampled, Sampler};
pub use state::SamplerState;

/// Changes the logit of one token, unless it is −∞, NaN or outside the vocabulary. A result that overflows is
/// clamped to the nearest finite value: only a suppressed token is −∞.
fn change_logit(logits: &mut [f32], id: u32, change: impl FnOnce(f32) -> f32) {
    let Some(logit) = usize::try_from(id).ok().and_then(|id| logits.get_mut(id)) else { return };
    if *logit > f32::NEG_INFINITY {
        *logit = finite(change(finite(*logit)));
    }
}

/// The nearest finite value.
fn finite(number: f32) -> f32 {
    number.clamp(f32::MIN, f32::MAX)
}
