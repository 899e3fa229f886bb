//! Sampling a token from logits: options, the sampler chain, stop strings; bit-identical on every target.

pub mod options;
pub mod sampling;
pub mod stop;
