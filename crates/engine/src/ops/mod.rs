//! One folder per operation: definition, CPU twin, kernels, gradient, tests.

pub(crate) mod add;
pub(crate) mod attention;
pub(crate) mod head_norm_rope;
pub(crate) mod linear;
mod parts;
pub(crate) mod rms_norm;

pub use add::Add;
pub use attention::{Attention, AttentionGrad, AttentionTrain};
pub use head_norm_rope::{HeadNormRope, HeadNormRopeGrad, KvValues, QkvRope, rope_table};
pub use linear::Linear;
pub use rms_norm::RmsNorm;
