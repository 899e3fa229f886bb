//! Images and audio, made into the numbers that Gemma 4's towers read.
//!
//! No model and no GPU here: pixels and samples in, patches and log-mel features out, to the last bit as the reference makes
//! them where it says how.

pub mod audio;
mod bands;
mod error;
pub mod image;

pub use error::MediaError;
