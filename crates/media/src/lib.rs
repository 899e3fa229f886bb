//! Preprocessing of images and audio for Gemma 4's vision and audio encoders.
//!
//! No model and no GPU: pixels and samples in, patches and log-mel features out, bit-exact where the reference specifies the arithmetic.

pub mod audio;
mod bands;
mod error;
pub mod image;

pub use error::MediaError;
