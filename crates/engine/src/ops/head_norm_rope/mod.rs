//! `y[t, h, :] = rotate(x[t, h, :] · (mean(x[t, h, :]²) + eps)^(-1/2) · w)`: the RMS norm of each head, where it has one, then RoPE.
//!
//! The rotation takes element `i` of a head with element `i + width / 2`, or elements `2i` and `2i + 1` ([`RopePairs`]); 2-D RoPE does the same in each half of
//! a head, with one axis of the position for each half. Cosines and sines come in a table per token, made by [`rope_table`].

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
