//! One folder per operation: definition, CPU twin, kernels, gradient, tests.

pub(crate) mod add;
pub(crate) mod add_norm;
pub(crate) mod elementwise;
pub(crate) mod linear;
mod parts;
pub(crate) mod ple;
pub(crate) mod rms_norm;
pub(crate) mod rms_norm_grad;

pub use add::Add;
pub use add_norm::{AddNorm, Branch};
pub use elementwise::Elementwise;
pub use linear::Linear;
pub use ple::Ple;
pub use rms_norm::RmsNorm;
pub use rms_norm_grad::RmsNormGrad;
