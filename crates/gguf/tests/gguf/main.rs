//! Tests of the public interface.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

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
