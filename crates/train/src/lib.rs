//! How an adapter learns: from lines of text to tokens with targets, from those to gradients, and step by step to an adapter.
//!
//! Base weights are never written. Adapters, gradients and moments stay on the device; of a step only its loss comes back. Nothing
//! here reads a clock, a file or the environment: the caller requests one step after the other, and stops asking to pause.

mod adapters;
mod checkpoint;
pub mod dataset;
pub mod defaults;
mod error;
mod memory;
mod order;
mod run;
mod schedule;
mod trainer;
mod update;

pub use adapters::{AdapterOptions, fresh, gradient_name, weights_of};
pub use checkpoint::Checkpoint;
pub use dataset::{Dataset, Example};
pub use error::{LineError, TrainError};
pub use memory::{Need, Shape};
pub use run::{Event, Run, RunOptions, StepReport};
pub use schedule::{Schedule, Shaped};
pub use trainer::{Batch, Settings, Trainer};
