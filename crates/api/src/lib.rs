//! Request and response shapes of the Ollama, OpenAI and Anthropic HTTP APIs.
//!
//! This crate opens no socket and runs no model, so a server and a web page can share it. Functions of [`request`] parse a
//! body of any API into one neutral [`GenerationRequest`] (or [`EmbeddingRequest`]). An engine reports [`GenerationEvent`]s;
//! writers of [`response`] turn them into the frames of a stream or into one body. [`ApiError`] has a status and a shape in
//! each API, [`listing`] lists models.
//!
//! ```
//! use std::time::Duration;
//! use rullama_api::response::{ReplyWriter, openai::ChatWriter};
//! use rullama_api::{DoneReason, Environment, GenerationEvent, Stats, Timestamp, request};
//!
//! struct Fixed;
//! impl Environment for Fixed {
//!     fn now(&self) -> Timestamp {
//!         Timestamp::from_unix(Duration::from_secs(1_777_622_400))
//!     }
//!     fn random(&mut self) -> u64 {
//!         7
//!     }
//! }
//!
//! # fn main() -> Result<(), rullama_api::ApiError> {
//! let body = br#"{"model": "gemma4:e2b", "messages": [{"role": "user", "content": "2+2?"}], "stream": true}"#;
//! let request = request::openai::chat_completions(body)?;
//! assert!(request.stream);
//!
//! let mut writer = ChatWriter::new(&mut Fixed, &request);
//! let mut out = Vec::new();
//! for event in [
//!     GenerationEvent::Started { prompt_tokens: 12, cached_tokens: 0 },
//!     GenerationEvent::Text { choice: 0, text: "4".into(), logprobs: Vec::new() },
//!     GenerationEvent::Done { choice: 0, reason: DoneReason::Stop, stats: Stats::default() },
//! ] {
//!     writer.event(&mut Fixed, &event, &mut out);
//! }
//! assert!(writer.is_finished());
//! assert!(String::from_utf8_lossy(&out).ends_with("data: [DONE]\n\n"));
//! # Ok(())
//! # }
//! ```

mod dialect;
mod embedding;
mod environment;
mod error;
mod error_reply;
mod event;
mod fields;
mod generation;
mod keep_alive;
pub mod listing;
mod media;
mod names;
mod options;
pub mod request;
pub mod response;
mod time;

pub use dialect::{Capability, Dialect};
pub use embedding::{EmbeddingEncoding, EmbeddingRequest};
pub use environment::{Environment, call_id, hex_id};
pub use error::ApiError;
pub use error_reply::ErrorReply;
pub use event::{DoneReason, GenerationEvent, Stats, TokenLogprob};
pub use generation::{
    ChatInput, Format, GenerationRequest, Grammar, Input, LoraScale, Prefill, PromptInput,
    PromptText, ToolChoice,
};
pub use keep_alive::KeepAlive;
pub use media::{Media, MediaKind};
pub use names::short_name;
pub use options::Options;
pub use time::Timestamp;
