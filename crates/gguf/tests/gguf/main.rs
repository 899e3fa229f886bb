//! What the crate promises, seen from outside.

#![expect(clippy::unwrap_used, reason = "helpers of tests, too, fail by panicking")]

mod arbitrary;
mod finite;
mod goldens;
mod hostile_header;
mod hostile_tensors;
mod hostile_values;
mod incremental;
mod metadata;
mod quant_decode;
mod quant_encode;
mod rows;
mod split;
mod support;
mod truncation;
mod write;
