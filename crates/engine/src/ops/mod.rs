//! One folder per operation: definition, CPU twin, kernels, gradient, tests.

pub(crate) mod adamw;
pub(crate) mod add;
pub(crate) mod add_norm;
pub(crate) mod argmax;
pub(crate) mod cross_entropy;
pub(crate) mod elementwise;
pub(crate) mod linear;
pub(crate) mod lora;
pub(crate) mod matmul;
mod order;
mod parts;
pub(crate) mod ple;
pub(crate) mod rms_norm;
pub(crate) mod rms_norm_grad;
pub(crate) mod sample;
pub(crate) mod select_row;
pub(crate) mod store;
pub(crate) mod suppress;
pub(crate) mod top_k;

pub use adamw::{AdamW, AdamWStep, Trained};
pub use add::Add;
pub use add_norm::{AddNorm, Branch};
pub use argmax::Argmax;
pub use cross_entropy::{CrossEntropy, CrossEntropyGrad, MASKED};
pub use elementwise::Elementwise;
pub use linear::Linear;
pub use lora::Adapter;
pub use matmul::{Form, Matmul};
pub use ple::Ple;
pub use rms_norm::RmsNorm;
pub use rms_norm_grad::RmsNormGrad;
pub use sample::{Draw, Sample};
pub use select_row::SelectRow;
pub use store::Store;
pub use suppress::Suppress;
pub use top_k::TopK;
