//! From logits to a token: options, the chain of samplers, stop strings; the same bits on every target.

pub mod options;
pub mod sampling;
pub mod stop;
