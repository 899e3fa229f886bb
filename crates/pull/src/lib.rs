//! Downloads models from Ollama's registry and Hugging Face into Ollama's store.
//!
//! A [`Puller`] fetches a model's manifest and blobs: in parallel parts, resumable after a kill at any moment, verified
//! before they get their final names; the manifest is written last. [`delete`], [`copy`], [`add_blob`] and [`create`] change
//! a store in the same way: every reader, Ollama included, sees complete models at any time.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use rullama_pull::{PullOptions, Puller};
//!
//! let puller = Puller::new("/home/me/.ollama/models", PullOptions::default());
//! let pulled = puller.pull(&"gemma4:e2b".parse()?, &mut |progress| {
//!     if let Some(line) = progress.line() {
//!         // Send it, or draw a bar.
//!         drop(line);
//!     }
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(pulled.name.to_string(), "gemma4:e2b");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod download;
mod error;
mod facts;
mod fetch;
mod headers;
mod hub;
mod join;
mod manifest;
mod options;
mod parts;
mod positioned;
mod progress;
mod pull;
mod remote;
mod write;

pub use error::PullError;
pub use options::{PartSize, PullOptions, Secret};
pub use progress::{OnProgress, Progress};
pub use pull::{Pulled, Puller};
pub use write::{Added, CreateRequest, Deleted, add_blob, copy, create, delete, has_blob};
