//! DiffusionGemma: a block of text is a canvas of noise that is denoised step by step, after a prompt that the same weights have read.

mod config;
mod graph;

pub use config::{DiffusionConfig, DiffusionDefaults};
pub(super) use graph::spans_name;
pub use graph::{Canvas, CanvasInputs, CanvasPass, canvas};
