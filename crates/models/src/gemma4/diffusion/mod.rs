//! DiffusionGemma: a block of text is a canvas of noise that settles step by step, behind a prompt that the same weights have read.

mod config;
mod list;

pub use config::{DiffusionConfig, DiffusionDefaults};
pub(super) use list::spans_name;
pub use list::{Canvas, CanvasInputs, CanvasPass, canvas};
