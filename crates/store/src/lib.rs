//! Ollama's model store on disk.
//!
//! A store holds one manifest per model and the content-addressed blobs that manifests point to. This crate finds the
//! store, parses names, and resolves a name to checked paths and texts. It never writes.

mod config;
mod digest;
mod error;
mod files;
mod locate;
mod manifest;
mod name;
mod read;
mod similar;
mod store;
mod verify;

pub use config::{ConfigBlob, DraftConfig};
pub use digest::Digest;
pub use error::{ManifestProblem, Outcome, Searched, StoreError};
pub use files::{Layer, ModelFiles};
pub use locate::{Environment, Platform, candidates};
pub use manifest::LayerKind;
pub use name::{ModelName, NamePart, NameRule};
pub use store::{Entry, Listing, Store, Summary, resolve, store_of};
pub use verify::{digest_of, verify};
