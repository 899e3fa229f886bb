//! Drafters: small decoders that predict a target model's next tokens from its KV caches and last hidden state.

mod config;
mod graph;

pub use config::{Clusters, DraftConfig, DraftLayer};
pub use graph::{DraftInputs, DraftPass, Drafts, PREFIX, draft};
