//! One folder per operation: definition, CPU reference, kernels, gradient, tests.

/// A WGSL part from a folder next to the file that names it; the folder is its kind.
macro_rules! part {
    ($kind:literal, $name:literal) => {{
        static PART: $crate::gpu::Part = $crate::gpu::Part {
            kind: $kind,
            name: concat!($kind, "/", $name),
            source: include_str!(concat!($kind, "/", $name, ".wgsl")),
        };
        &PART
    }};
}

#[macro_use]
mod parts;

pub(crate) mod accumulate;
pub(crate) mod adamw;
pub(crate) mod add;
pub(crate) mod add_norm;
pub(crate) mod argmax;
pub(crate) mod attention;
pub(crate) mod block_diffusion;
pub(crate) mod columns;
pub(crate) mod convolution;
pub(crate) mod cross_entropy;
pub(crate) mod dropout;
pub(crate) mod elementwise;
pub(crate) mod embed;
pub(crate) mod expert_groups;
pub(crate) mod experts_combine;
mod fused;
pub(crate) mod gather_rows;
pub(crate) mod gradient_norm;
pub(crate) mod head_norm_rope;
pub(crate) mod latest_tokens;
pub(crate) mod layer_norm;
pub(crate) mod local_attention;
mod logit_order;
pub(crate) mod matmul;
pub(crate) mod member;
pub(crate) mod norm_sum;
pub(crate) mod patches;
pub(crate) mod ple;
pub(crate) mod pool;
pub(crate) mod rms_norm;
pub(crate) mod rms_norm_grad;
pub(crate) mod router;
pub(crate) mod sample;
pub(crate) mod select_row;
mod sequences;
mod slab;
mod slice;
mod split_k;
pub(crate) mod store;
pub(crate) mod suppress;
pub(crate) mod top_k;

pub use accumulate::{Accumulate, Clear};
pub use adamw::{AdamW, AdamWStep, Trained};
pub use add::Add;
pub use add_norm::{AddNorm, Branch};
pub use argmax::Argmax;
pub use attention::{
    Attention, AttentionGrad, AttentionQkv, AttentionRope2d, AttentionTrain, Mask, NewKv,
    QueryInputs,
};
pub use block_diffusion::{CanvasAccept, CanvasSoftmax, CanvasTokens};
pub use columns::{JoinColumns, SplitColumns};
pub use convolution::{ConvolveCausal, ConvolveStride2};
pub use cross_entropy::{CrossEntropy, CrossEntropyGrad, MASKED};
pub use dropout::Dropout;
pub use elementwise::{Activation, Elementwise};
pub use embed::Embed;
pub use expert_groups::{ExpertGroups, Routes};
pub use experts_combine::{ExpertsCombine, ExpertsCombineGrad};
pub use gather_rows::{GatherRows, ScatterRows};
pub use gradient_norm::{ClipSettings, SquareSum};
pub use head_norm_rope::{
    HeadForm, HeadNormRope, HeadNormRopeGrad, KvStoreInputs, QkvRope, RopePairs, rope_table,
};
pub use latest_tokens::{GatherTokens, ScatterTokens};
pub use layer_norm::LayerNorm;
pub use local_attention::LocalAttention;
pub use matmul::{
    Adapter, Clamp, ClampedLinear, ClampedPrologue, Epilogue, ExpertRows, FoldedDown, Form,
    FusedLinear, Linear, LinearExperts, LinearExpertsGrad, LinearT, LoraForm, LoraPair, Matmul,
    Mixture, Prologue, RowSelect, SlotFactors, SlotLora, Stacked,
};
pub use member::Member;
pub use norm_sum::NormSum;
pub use patches::Patches;
pub use ple::Ple;
pub use pool::Pool;
pub use rms_norm::RmsNorm;
pub use rms_norm_grad::RmsNormGrad;
pub use router::{Router, RouterGrad};
pub use sample::{Draw, Sample};
pub use select_row::SelectRow;
pub use sequences::{Paging, Sequences};
pub use slice::{Columns, Slice};
pub use store::Store;
pub use suppress::Suppress;
pub use top_k::TopK;
