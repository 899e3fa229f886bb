//! The tokenizer against known ids, a slow reference, and broken vocabularies. One program, so that the real vocabulary is read once.

mod decoding;
mod gguf;
mod hostile;
mod markers;
mod properties;
mod reference;
mod roles;
mod support;
mod vectors;
