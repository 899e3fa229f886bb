//! Models as graphs of operations: decoders (Gemma 4, Gemma 3, the Llama family), vision and audio encoders, drafters, embedding and
//! diffusion models.
//! A configuration is read from a file's keys and checked against its tensors; graphs are built from both. This crate knows no device,
//! no token loop and no file contents.

mod adapted;
mod build;
pub mod decoder;
pub mod embedding;
mod encoder;
mod error;
pub mod family;
mod folded_lora;
pub mod gemma4;
mod keys;
pub mod siglip;
mod tensors;
mod training;

pub use adapted::{Adapted, FactorGroup};
pub use encoder::EncoderGraph;
pub use error::ModelError;
pub use folded_lora::{FoldedLora, FoldedLoraGraph, folded_lora_graph};
pub use tensors::{Catalog, Expected};
pub use training::{Learned, Parameter};
