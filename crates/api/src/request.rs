//! Requests of each API, read from JSON.
//!
//! Unknown fields are ignored; a known one that cannot be honoured is an error, never dropped.

pub mod anthropic;
mod calls;
pub(crate) mod conversation;
pub mod llamacpp;
pub mod ollama;
pub mod openai;
mod shared;
mod tools;
