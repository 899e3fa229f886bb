//! The operations as data, for their definitions and their kernels alike.

use crate::ops::{Columns, sequences::Paging};

/// Norm of each head, then its rotation.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadNormRope {
    /// Numbers in a head.
    pub width: usize,
    /// Added to the mean, inside the root.
    pub eps: f32,
    /// The columns of the heads.
    pub columns: Columns,
    /// Axes of a position (2 for 2-D RoPE): each rotates its part of a head.
    pub axes: usize,
}

/// Head norms, rotation and cache write.
#[derive(Debug, Clone, PartialEq)]
pub struct QkvRope {
    /// Numbers in a head.
    pub width: usize,
    /// Added to the mean, inside the root.
    pub eps: f32,
    /// The columns of the keys' heads.
    pub k: Columns,
    /// The columns of the values' heads.
    pub v: Columns,
    /// The columns of the queries' heads, if there are any.
    pub q: Option<Columns>,
    /// Where the KV caches are pools of pages, whose rows are whose; the last input holds the sequences then.
    pub paging: Option<Paging>,
}

/// Input numbers, as [`super::KvStoreInputs`] orders them; the raw queries and the weight of their norm follow.
pub(super) mod input {
    pub(crate) const K: usize = 0;
    pub(crate) const V: usize = 1;
    pub(crate) const K_NORM: usize = 2;
    pub(crate) const ROPE: usize = 3;
    pub(crate) const K_CACHE: usize = 4;
    pub(crate) const V_CACHE: usize = 5;
    pub(crate) const Q: usize = 6;
    pub(crate) const Q_NORM: usize = 7;
    /// The inputs that keys and values are read from and stored in.
    pub(crate) const STORED: [usize; 6] = [K, V, K_NORM, ROPE, K_CACHE, V_CACHE];
}
