//! The engine of rullama's server: loads models on demand, one thread each, and runs many requests on them at once.
//!
//! A [`Host`] implements the server's `Engine`. Models are loaded by the first request that names them and unloaded when they have been idle for their
//! `keep_alive`, or when another one needs their memory. Requests share a scheduler (continuous batching); diffusion and embedding models take one
//! request after another.

mod adapters;
mod calls;
mod choice;
mod decoder;
mod diffusion;
mod embedder;
mod error;
mod grammar;
mod host;
mod job;
mod load;
mod media;
mod options;
mod prompt;
mod registry;

pub use host::Host;
pub use options::HostOptions;
