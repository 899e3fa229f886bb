//! Runs a graph on a WebGPU device: kernels composed from parts, memory by lifetimes, one pass and one submit per run.
//! The only module of the workspace that knows wgpu.

mod ahead;
mod beside;
mod buffer;
mod call;
mod compose;
mod device;
mod facts;
mod formats;
mod instrument;
mod kernel;
mod layout;
mod memory;
mod order;
mod pipelines;
mod plan;
pub mod profile;
mod readback;
mod split_kv_partials;
mod weights;

pub use ahead::{Ahead, Compiling, KernelSource};
pub use buffer::{Buffer, Held};
pub use call::GpuCall;
pub use compose::{Dialect, compose};
pub use device::{Gpu, OpenOptions, Traffic};
pub use facts::{DeviceFacts, MatrixBytes, MatrixUnits};
pub use formats::{check_format, check_formats, reads};
pub use kernel::{Bind, Dispatch, Kernel, Part, Place};
pub(crate) use layout::ROW_STEP;
pub use layout::Slabs;
pub(crate) use memory::value_bytes;
pub use memory::work_bytes;
pub use order::Order;
pub use plan::{GpuPlan, States, dispatch_count, dispatches, plan_bytes};
pub use profile::Timing;
pub use readback::{Arriving, Fence, LANDING_BYTES};
pub use split_kv_partials::{Met, SplitKvPartials};
pub use weights::Weights;
