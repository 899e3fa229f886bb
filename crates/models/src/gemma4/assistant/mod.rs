//! Drafters: small decoders without keys of their own that guess what a model will say next, from its caches and its last hidden state.

mod config;
mod graph;

pub use config::{Clusters, DraftConfig, DraftLayer};
pub use graph::{DraftInputs, DraftPass, Drafts, PREFIX, draft};
