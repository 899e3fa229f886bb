//! DiffusionGemma, block diffusion: a canvas of noise after the prompt is denoised step by step into a block of text.

mod config;
mod graph;

pub use config::{DiffusionConfig, DiffusionDefaults};
pub(crate) use graph::spans_name;
pub use graph::{Canvas, CanvasInputs, CanvasPass, canvas};
