//! One interface to both executors: a device, the weights of a model on it, the memory of a session, and plans.

mod memory;
mod plan;
mod weights;

pub use memory::{Memory, state_bytes};
pub use plan::{Plan, Results};
pub use weights::Weights;

use crate::{
    error::EngineError,
    gpu::{Gpu, check_format},
    graph::{Origin, Type},
};

/// Where graphs run.
#[derive(Debug, Clone)]
pub enum Device {
    /// On the CPU, operation by operation.
    Cpu,
    /// On a GPU.
    Gpu(Gpu),
}

impl Device {
    /// The adapter's display name.
    pub fn name(&self) -> &str {
        match self {
            Self::Cpu => "CPU",
            Self::Gpu(gpu) => gpu.name(),
        }
    }

    /// Checks that the device reads a weight's format, before anything is loaded.
    ///
    /// # Errors
    /// If it is a GPU and no kernel reads the format.
    pub fn check_format(&self, origin: &Origin, ty: &Type) -> Result<(), EngineError> {
        match self {
            Self::Cpu => Ok(()),
            Self::Gpu(_) => check_format(origin, ty),
        }
    }

    /// Maximum bytes of a value that kernels can bind.
    pub fn most_bytes(&self) -> u64 {
        match self {
            Self::Cpu => u64::MAX,
            Self::Gpu(gpu) => gpu.facts().binding_bytes,
        }
    }
}
