//! Sampling against numbers computed by hand and by other implementations.

mod chain;
mod dry;
mod edges;
mod grammar;
mod history;
mod logprobs;
mod mirostat;
mod properties;
mod same_bits;
mod state;
mod worked_numbers;

use rullama_sampling::{
    options::SamplingOptions,
    sampling::{Candidates, Sampler},
};

/// The logits all worked numbers start from.
const LOGITS: [f32; 6] = [3.0, 2.5, 1.0, 0.0, -1.0, -2.0];

/// Options with all filters off: a plain draw.
fn off() -> SamplingOptions {
    SamplingOptions { temperature: 1.0, top_k: 0, top_p: 1.0, ..SamplingOptions::default() }
}

fn sampler(options: &SamplingOptions, seed: u32) -> Sampler {
    Sampler::new(options, seed).expect("valid options")
}

fn survivors(options: &SamplingOptions, logits: &[f32]) -> Candidates {
    sampler(options, 1).survivors(logits, None).expect("candidates")
}

/// Logits of tokens with these relative probabilities.
fn logits_of(weights: &[f64]) -> Vec<f32> {
    weights.iter().map(|weight| weight.ln() as f32).collect()
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{found:?} is not {expected:?}");
    for (found_one, expected_one) in found.iter().zip(expected) {
        let error = (f64::from(*found_one) - expected_one).abs();
        assert!(error < 2e-6, "{found:?} is not {expected:?}");
    }
}
