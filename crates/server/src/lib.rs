//! HTTP: the app, the models on this machine and their bytes, and the APIs of Ollama, OpenAI, Anthropic and llama.cpp.
//!
//! A [`Server`] listens on one address. It serves the built app, a list of the models it knows, the bytes of their weights (blobs that a manifest of a
//! model names, and files the caller named), and four APIs over an [`Engine`](engine::Engine), which this crate leaves to its caller. Other sites and
//! other host names are refused; an address that other machines can reach needs keys or the caller's consent.

mod api;
mod app;
mod catalog;
mod clock;
mod connections;
mod content;
pub mod engine;
mod error;
mod facts;
mod guard;
mod headers;
mod keys;
mod limits;
mod options;
mod plain;
mod range;
mod record;
mod refusal;
mod routes;
mod served;
mod server;
mod signals;
mod tls;

pub use catalog::{LayerRow, ModelRow};
pub use error::ServerError;
pub use keys::ApiKeys;
pub use limits::{ApiLimits, Limits};
pub use options::{Options, Origin, PlainFile};
pub use record::{Log, LogEntry};
pub use server::Server;
pub use signals::Signals;
pub use tls::Tls;
