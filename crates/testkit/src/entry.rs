//! Entry points for hostile bytes: invariants for any file, model output or client request.
//!
//! Each takes any bytes and panics only if an invariant is violated. Fuzzers call them, and the ordinary tests do with
//! the seeds of `fuzz/corpus` and a bounded number of random inputs.

mod chat;
mod gguf;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "media")]
mod media;
#[cfg(feature = "models")]
mod models;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "http")]
mod store;
mod tokenizer;

pub use chat::chat;
pub use gguf::gguf;
#[cfg(feature = "http")]
pub use http::http;
#[cfg(feature = "media")]
pub use media::{audio, image};
#[cfg(feature = "models")]
pub use models::{adapter, checkpoint, dataset, schema, session, session_seed, vocabulary};
#[cfg(feature = "server")]
pub use server::request;
#[cfg(feature = "http")]
pub use store::manifest;
pub use tokenizer::tokenizer;

/// A target's name and function.
pub type Entry = (&'static str, fn(&[u8]));

/// All entry points, by the names of their fuzz targets.
pub const ALL: &[Entry] = &[
    ("gguf", gguf),
    ("tokenizer", tokenizer),
    ("chat", chat),
    #[cfg(feature = "media")]
    ("image", image),
    #[cfg(feature = "media")]
    ("audio", audio),
    #[cfg(feature = "http")]
    ("http", http),
    #[cfg(feature = "http")]
    ("manifest", manifest),
    #[cfg(feature = "models")]
    ("vocabulary", vocabulary),
    #[cfg(feature = "models")]
    ("session", session),
    #[cfg(feature = "models")]
    ("adapter", adapter),
    #[cfg(feature = "models")]
    ("dataset", dataset),
    #[cfg(feature = "models")]
    ("checkpoint", checkpoint),
    #[cfg(feature = "models")]
    ("schema", schema),
    #[cfg(feature = "server")]
    ("request", request),
];

/// The bytes as text, truncated to keep an invocation short.
fn text(data: &[u8]) -> String {
    const MAX_BYTES: usize = 8 << 10;
    String::from_utf8_lossy(&data[..data.len().min(MAX_BYTES)]).into_owned()
}
