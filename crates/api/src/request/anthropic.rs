//! Anthropic's requests, `/v1/messages…`.

mod blocks;
mod messages;

pub use messages::{count_tokens, messages};
