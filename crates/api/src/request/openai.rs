//! OpenAI's requests, `/v1/…`.

mod chat;
mod completions;
mod content;
mod embeddings;
mod extras;
mod format;
mod input_items;
mod responses;
mod transcriptions;

pub use chat::chat_completions;
pub(super) use chat::message;
pub use completions::completions;
pub use embeddings::embeddings;
pub(super) use format::think;
pub use responses::{ResponsesRequest, responses};
pub use transcriptions::{FormField, TranscriptionFormat, TranscriptionRequest, transcriptions};
