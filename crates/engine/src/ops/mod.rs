//! One folder per operation: definition, CPU twin, kernels, gradient, tests.

pub(crate) mod adamw;
pub(crate) mod add;
pub(crate) mod add_norm;
pub(crate) mod argmax;
pub(crate) mod attention;
pub(crate) mod cross_entropy;
pub(crate) mod elementwise;
pub(crate) mod embed;
pub(crate) mod expert_groups;
pub(crate) mod experts_combine;
mod fused;
pub(crate) mod head_norm_rope;
pub(crate) mod linear;
pub(crate) mod linear_experts;
pub(crate) mod linear_t;
pub(crate) mod lora;
pub(crate) mod matmul;
mod order;
mod parts;
pub(crate) mod ple;
pub(crate) mod pool;
pub(crate) mod product;
pub(crate) mod rms_norm;
pub(crate) mod rms_norm_grad;
pub(crate) mod router;
pub(crate) mod sample;
pub(crate) mod select_row;
mod slab;
mod slice;
pub(crate) mod store;
pub(crate) mod suppress;
pub(crate) mod tile;
pub(crate) mod top_k;

pub use adamw::{AdamW, AdamWStep, Trained};
pub use add::Add;
pub use add_norm::{AddNorm, Branch};
pub use argmax::Argmax;
pub use attention::{
    Attention, AttentionEveryone, AttentionGrad, AttentionQkv, AttentionTrain, OwnValues,
    QueryValues,
};
pub use cross_entropy::{CrossEntropy, CrossEntropyGrad, MASKED};
pub use elementwise::Elementwise;
pub use embed::Embed;
pub use expert_groups::{ExpertGroups, Routes};
pub use experts_combine::{ExpertsCombine, ExpertsCombineGrad};
pub use head_norm_rope::{HeadNormRope, HeadNormRopeGrad, KvValues, QkvRope, rope_table};
pub use linear::Linear;
pub use linear_experts::{LinearExperts, LinearExpertsGrad};
pub use linear_t::LinearT;
pub use lora::Adapter;
pub use matmul::{Form, Matmul};
pub use ple::Ple;
pub use pool::Pool;
pub use product::{Begin, End, Finish, Product, Start};
pub use rms_norm::RmsNorm;
pub use rms_norm_grad::RmsNormGrad;
pub use router::{Router, RouterGrad};
pub use sample::{Draw, Sample};
pub use select_row::SelectRow;
pub use slice::{Columns, Slice};
pub use store::Store;
pub use suppress::Suppress;
pub use top_k::TopK;
