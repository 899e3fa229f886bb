//! Runs a list on a WebGPU device: kernels composed from parts, memory by lifetimes, one pass and one submit per run.
//! The only module of the workspace that knows wgpu.

mod call;
mod compose;
mod device;
mod facts;
mod kernel;
mod layout;
mod memory;
mod pipelines;
mod plan;
mod profile;
mod readback;
mod weights;

pub use call::GpuCall;
pub use compose::{Dialect, compose};
pub use device::Gpu;
pub use facts::{DeviceFacts, MatrixUnits};
pub use kernel::{Bind, Dispatch, Kernel, Part, Place};
pub use layout::Slabs;
pub use plan::{GpuPlan, States};
pub use profile::Timing;
pub use weights::Weights;
