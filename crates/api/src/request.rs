//! Parsers of each API's requests.
//!
//! Unknown fields are ignored; a known field that is not supported is an error, never dropped.

pub mod anthropic;
mod calls;
pub(crate) mod conversation;
pub mod llamacpp;
pub mod ollama;
pub mod openai;
mod shared;
mod tools;
