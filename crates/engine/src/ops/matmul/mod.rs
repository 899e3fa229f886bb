//! Matmuls: linear layers, fused or plain, with a weight in any block format; mixtures of experts, transposed weights, LoRA, and matmuls of
//! two f32 values. Dependencies go one way: operations ([`linear`], [`fused`], [`clamped`], [`moe`], [`transposed`]), [`dispatch`],
//! [`select`], kernel forms ([`gemv`], [`gemv_batch`], [`gemm`]), [`lora`], [`op`].

pub(crate) mod cases;
pub(crate) mod clamped;
pub(crate) mod dense;
mod dispatch;
pub(crate) mod fused;
mod gemm;
mod gemv;
mod gemv_batch;
mod linear;
pub(crate) mod lora;
pub(crate) mod moe;
mod op;
mod reference;
mod select;
pub(crate) mod transposed;

pub use clamped::{Clamp, ClampedLinear, ClampedPrologue, Stacked};
pub use dense::{Form, Matmul};
pub use fused::{LoraPair, Mixture};
pub use linear::Linear;
pub use lora::{Adapter, SlotLora};
pub use moe::{LinearExperts, LinearExpertsGrad};
pub use op::{
    Epilogue, ExpertRows, FoldedDown, FusedLinear, LoraForm, Prologue, RowSelect, SlotFactors,
};
pub use transposed::LinearT;
