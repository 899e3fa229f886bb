//! One folder per operation: definition, CPU twin, kernels, gradient, tests.

pub(crate) mod add;
pub(crate) mod linear;
mod parts;
pub(crate) mod rms_norm;

pub use add::Add;
pub use linear::Linear;
pub use rms_norm::RmsNorm;

pub(crate) mod router;
pub use router::{Router, RouterGrad};
