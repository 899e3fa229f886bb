//! `o[t, h, :] = Σ_j softmax_j(q[t, h, :] · k[j, h / g, :]) · v[j, h / g, :]` over the key positions `j` that token `t` sees.
//!
//! The [`Mask`] defines those positions. Position `j` is stored in slot `j % slots` of its KV cache. `g = heads / kv heads` adjacent query
//! heads share a kv head. Scores are not scaled. Rows of tokens that are not live are zeros.
//!
//! `select.rs` chooses the kernel form: `decode` (split-KV), `prefill` (flash attention over a KV cache) or `encoder` (flash attention
//! without a cache). `forward.rs`, `qkv.rs`, `rope_2d.rs` and `backward` are the ops; imports go from these to `select.rs`, to the forms, to
//! `problem.rs` and `mask`.

mod backward;
pub(crate) mod cases;
mod decode;
mod encoder;
mod forward;
mod mask;
mod prefill;
mod problem;
mod qkv;
mod reference;
mod rope_2d;
mod select;

pub use backward::{AttentionGrad, AttentionTrain};
pub use forward::Attention;
pub use mask::Mask;
pub use qkv::{AttentionQkv, NewKv, QueryInputs};
pub use rope_2d::AttentionRope2d;
