//! What Gemma 4 computes, as graphs of operations.
//!
//! A configuration comes from a file's keys and is checked against its tensors; from both, graphs are written. Nothing here
//! knows a device, a token loop or a file's bytes.

mod adapted;
mod build;
pub mod embedding;
mod error;
mod folded_lora;
pub mod gemma4;
mod tensors;
mod training;

pub use adapted::{Adapted, FactorGroup};
pub use error::ModelError;
pub use folded_lora::{FoldedLora, FoldedLoraGraph, folded_lora_graph};
pub use tensors::{Catalog, Expected};
pub use training::{Learned, Parameter};
