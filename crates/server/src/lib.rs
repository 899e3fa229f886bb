//! HTTP: the app, the models on this machine and their bytes.
//!
//! A [`Server`] listens on one address and only reads. It hands out the built app, a list of the models it knows, and the bytes of
//! their weights: blobs that a manifest of a Gemma model names, and files the caller named. Other sites and other host names are refused.

mod app;
mod catalog;
mod connections;
mod content;
mod error;
mod facts;
mod guard;
mod headers;
mod options;
mod plain;
mod range;
mod refusal;
mod routes;
mod server;
mod signals;
mod tags;

pub use catalog::{LayerRow, ModelRow};
pub use connections::Limits;
pub use error::ServerError;
pub use options::{Options, Origin, PlainFile};
pub use server::Server;
pub use signals::Signals;
