//! LoRA training: from JSON lines to tokens with targets, to gradients and optimizer steps.
//!
//! Base weights are never written. Adapter, gradients and moments stay on the device; each step reads back only its loss. Nothing here
//! reads a clock, a file or the environment: the caller requests step after step, and pauses by not requesting the next.

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
pub use schedule::{Schedule, ScheduleShape};
pub use trainer::{Batch, Settings, Trainer};
