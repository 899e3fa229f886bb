//! What decoders compute (Gemma 4, Gemma 3, the Llama family) and what belongs to them, as graphs of operations.
//!
//! A configuration comes from a file's keys and is checked against its tensors; from both, graphs are written. Nothing here
//! knows a device, a token loop or a file's bytes.

mod adapted;
mod build;
pub mod embedding;
mod error;
pub mod family;
mod folded_lora;
pub mod gemma4;
mod keys;
mod tensors;
mod training;

pub use adapted::{Adapted, FactorGroup};
pub use error::ModelError;
pub use folded_lora::{FoldedLora, FoldedLoraGraph, folded_lora_graph};
pub use tensors::{Catalog, Expected};
pub use training::{Learned, Parameter};
