//! Which files a model name means: Ollama's store on disk.
//!
//! A store holds one small manifest per model and content-addressed blobs they point to. This crate finds the store,
//! parses names, and turns a name into checked paths and texts. It only ever reads.

mod config;
mod digest;
mod error;
mod files;
mod locate;
mod manifest;
mod name;
mod near;
mod read;
mod store;
mod verify;

pub use config::{ConfigBlob, DraftConfig};
pub use digest::Digest;
pub use error::{ManifestProblem, Outcome, Searched, StoreError};
pub use files::{Layer, ModelFiles};
pub use locate::{Environment, Platform, candidates};
pub use manifest::LayerKind;
pub use name::{ModelName, NamePart, NameRule};
pub use store::{Entry, Listing, Store, Summary, resolve};
pub use verify::verify;
