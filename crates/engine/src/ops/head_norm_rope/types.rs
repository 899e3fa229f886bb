//! The operations as data, for their definitions and their kernels alike.

use crate::ops::{Columns, sequences::Paging};

/// How heads are prepared for attention. Gemma 4's form is made from its `eps` alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadForm {
    /// Added to the mean of norms, inside the root.
    pub eps: f32,
    /// Whether queries and keys are normed, with a weight each. Where they are not, the RoPE table stands in the weight's place among the
    /// inputs and is not read there.
    pub qk_norm: bool,
    /// Whether values are normed, without a weight.
    pub v_norm: bool,
    /// Which elements of a head rotate together.
    pub pairs: RopePairs,
}

/// Which elements of a head RoPE rotates together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopePairs {
    /// Element `i` with element `i + width / 2`: split-half, or "NeoX".
    Halves,
    /// Element `2i` with element `2i + 1`: interleaved, or "normal".
    Adjacent,
}

impl From<f32> for HeadForm {
    fn from(eps: f32) -> Self {
        Self { eps, qk_norm: true, v_norm: true, pairs: RopePairs::Halves }
    }
}

impl HeadForm {
    /// Distance between the elements of a pair, in heads of this width whose positions have so many axes.
    pub(super) fn stride(&self, width: usize, axes: usize) -> usize {
        match self.pairs {
            RopePairs::Halves => width / 2 / axes,
            RopePairs::Adjacent => 1,
        }
    }
}

/// Norm of each head, then its rotation.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadNormRope {
    /// Numbers in a head.
    pub width: usize,
    /// Norm and pairs: those of queries and keys where heads are rotated, else those of values.
    pub form: HeadForm,
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
    /// Norms and pairs.
    pub form: HeadForm,
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
