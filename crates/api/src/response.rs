//! Responses of each API, written from the engine's events.
//!
//! A [`ReplyWriter`] turns events into the frames of a stream; without streaming, a [`Reply`] collects the events and the
//! same writer turns it into a body.

pub mod anthropic;
pub mod embeddings;
mod frame;
pub mod llamacpp;
mod logprobs;
pub mod ollama;
pub mod openai;
mod reply;
mod usage;

pub use frame::{NDJSON, SSE};
pub use reply::{Choice, Item, Reply};
pub use usage::Usage;

use serde_json::Value;

use crate::{Environment, GenerationEvent};

/// Writes one response.
///
/// Events may come in any order; the writer keeps the invariants of clients' parsers (one role, contiguous indices, closed
/// items). Events after the last frame are ignored.
pub trait ReplyWriter {
    /// The content type of the stream.
    fn content_type(&self) -> &'static str;

    /// Appends the frames of one event to `out`.
    fn event(
        &mut self,
        environment: &mut dyn Environment,
        event: &GenerationEvent,
        out: &mut Vec<u8>,
    );

    /// Appends what keeps a silent connection alive, if this API has something.
    fn keep_alive(&mut self, environment: &mut dyn Environment, out: &mut Vec<u8>);

    /// Whether the last frame is written.
    fn is_finished(&self) -> bool;

    /// The whole response as one JSON value, for requests without `stream`.
    fn body(&mut self, environment: &mut dyn Environment, reply: &Reply) -> Value;
}
