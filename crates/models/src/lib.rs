//! What Gemma 4 computes, as lists of operations.
//!
//! A configuration comes from a file's keys and is checked against its tensors; from both, lists are written. Nothing here
//! knows a device, a token loop or a file's bytes.

mod adapted;
mod ahead;
mod build;
pub mod embedding;
mod error;
pub mod gemma4;
mod tensors;
mod training;

pub use adapted::{Adapted, FactorGroup};
pub use ahead::{AheadGroup, AheadList, ahead_list};
pub use error::ModelError;
pub use tensors::{Catalog, Expected};
pub use training::{Learned, Parameter};
