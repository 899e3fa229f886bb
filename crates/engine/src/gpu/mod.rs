//! Runs a graph on a WebGPU device: kernels composed from parts, slots shared by lifetime, one compute pass and one submit per run.
//! The only module of the workspace that uses wgpu.

mod barriers;
mod buffer;
mod call;
mod compiler;
mod compose;
mod device;
mod edge_layout;
mod f16_columns;
mod facts;
mod formats;
mod instrument;
mod kernel;
mod lower;
mod memory;
mod pipelines;
mod plan;
mod plan_text;
pub mod profile;
mod readback;
mod slabs;
mod split_kv;
mod weights;

pub use buffer::{Allocated, Buffer};
pub use call::GpuCall;
pub use compiler::{Compiling, KernelSource, PipelineCompiler};
pub use compose::{Dialect, compose};
pub use device::{Gpu, OpenOptions, Traffic};
pub use edge_layout::Layout;
pub use f16_columns::F16Columns;
pub use facts::{DeviceFacts, MatrixInt8, MatrixUnits};
pub use formats::{check_format, check_formats, reads};
pub use kernel::{Bind, BufferRef, Dispatch, Kernel, Part};
pub use lower::Edge;
pub(crate) use lower::Lowered;
pub(crate) use memory::value_bytes;
pub use memory::work_bytes;
pub use plan::{GpuPlan, States, dispatch_count, dispatches, plan_bytes};
pub use plan_text::plan_text;
pub use profile::Timing;
pub use readback::{Fence, PendingReadback, STAGING_BYTES};
pub use slabs::{ROW_STEP, Slabs};
pub use split_kv::{LoraPartials, SplitKvPartials};
pub use weights::Weights;
