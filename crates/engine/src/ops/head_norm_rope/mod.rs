//! `y[t, h, :] = rotate(x[t, h, :] · (mean(x[t, h, :]²) + eps)^(-1/2) · w)`: the RMS norm of each head, if it has one, then RoPE.
//!
//! RoPE pairs element `i` of a head with element `i + width / 2`, or elements `2i` and `2i + 1` ([`RopePairs`]); 2-D RoPE does so in each half of
//! a head, with one axis of the position per half. Cosines and sines are in a table per token, computed by [`rope_table`].

pub(crate) mod cases;
mod forward;
pub(crate) mod gpu;
mod grad;
mod qkv;
mod reference;
mod table;
mod types;

pub use grad::HeadNormRopeGrad;
pub use qkv::KvStoreInputs;
pub(crate) use reference::{assert_table, store_heads};
pub use table::rope_table;
pub use types::{HeadForm, HeadNormRope, QkvRope, RopePairs};
