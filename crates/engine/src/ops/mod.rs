//! One folder per operation: definition, CPU twin, kernels, gradient, tests.

pub(crate) mod add;
pub(crate) mod linear;
mod parts;
pub(crate) mod rms_norm;

pub use add::Add;
pub use linear::Linear;
pub use rms_norm::RmsNorm;

pub(crate) mod expert_groups;
pub(crate) mod experts_combine;
pub(crate) mod linear_experts;
pub(crate) mod router;

pub use expert_groups::{ExpertGroups, Routes};
pub use experts_combine::{ExpertsCombine, ExpertsCombineGrad};
pub use linear_experts::{LinearExperts, LinearExpertsGrad};
pub use router::{Router, RouterGrad};
