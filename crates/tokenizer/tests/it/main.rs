//! The tokenizer against known ids, a slow reference and malformed vocabularies. One test binary, so that Gemma's vocabulary is
//! read once.

mod byte_level;
mod decoding;
mod gguf;
mod hostile;
mod markers;
mod properties;
mod reference;
mod roles;
mod scores;
mod support;
mod vectors;
