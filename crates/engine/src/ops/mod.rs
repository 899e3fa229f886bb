//! One folder per operation: definition, CPU twin, kernels, gradient, tests.

pub(crate) mod add;
pub(crate) mod add_norm;
pub(crate) mod attention;
pub(crate) mod elementwise;
pub(crate) mod embed;
pub(crate) mod head_norm_rope;
pub(crate) mod linear;
pub(crate) mod linear_t;
mod parts;
pub(crate) mod ple;
pub(crate) mod rms_norm;
mod slab;

pub use add::Add;
pub use attention::Attention;
pub use embed::Embed;
pub use head_norm_rope::{HeadNormRope, HeadNormRopeGrad, KvValues, QkvRope, rope_table};
pub use linear::Linear;
pub use linear_t::LinearT;
pub(crate) mod rms_norm_grad;
pub use add_norm::{AddNorm, Branch};
pub use elementwise::Elementwise;
pub use ple::Ple;
pub use rms_norm::RmsNorm;
pub use rms_norm_grad::RmsNormGrad;

pub(crate) mod expert_groups;
pub(crate) mod experts_combine;
pub(crate) mod linear_experts;
pub(crate) mod router;

pub use expert_groups::{ExpertGroups, Routes};
pub use experts_combine::{ExpertsCombine, ExpertsCombineGrad};
pub use linear_experts::{LinearExperts, LinearExpertsGrad};
pub use router::{Router, RouterGrad};
