//! The ops as data, shared by their definitions and kernels.

use crate::ops::{Columns, sequences::Paging};

/// How heads are prepared for attention. Gemma 4's form is built from its `eps` alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadForm {
    /// The eps of the norms.
    pub eps: f32,
    /// Whether queries and keys are normed, with a weight each. If not, the RoPE table takes the place of the weight among the inputs and is not
    /// read there.
    pub qk_norm: bool,
    /// Whether values are normed, without a weight.
    pub v_norm: bool,
    /// Which elements of a head RoPE rotates together.
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
    /// Distance between the elements of a pair, in heads of this width with positions of `axes` axes.
    pub(super) fn stride(&self, width: usize, axes: usize) -> usize {
        match self.pairs {
            RopePairs::Halves => width / 2 / axes,
            RopePairs::Adjacent => 1,
        }
    }
}

/// Head norm, then RoPE.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadNormRope {
    /// Elements per head.
    pub width: usize,
    /// Norm and pairs: those of queries and keys if heads are rotated, else those of values.
    pub form: HeadForm,
    /// The columns of the heads.
    pub columns: Columns,
    /// Axes of a position (2 for 2-D RoPE): each rotates its part of a head.
    pub axes: usize,
}

/// Head norms, RoPE and KV cache writes.
#[derive(Debug, Clone, PartialEq)]
pub struct QkvRope {
    /// Elements per head.
    pub width: usize,
    /// Norms and pairs.
    pub form: HeadForm,
    /// The columns of the keys' heads.
    pub k: Columns,
    /// The columns of the values' heads.
    pub v: Columns,
    /// The columns of the queries' heads, if any.
    pub q: Option<Columns>,
    /// With KV pools: how the rows belong to sequences; the last input then holds the sequences.
    pub paging: Option<Paging>,
}

/// Input indices in the order of [`super::KvStoreInputs`]; the raw queries and the weight of their norm follow.
pub(super) mod input {
    pub(crate) const K: usize = 0;
    pub(crate) const V: usize = 1;
    pub(crate) const K_NORM: usize = 2;
    pub(crate) const ROPE: usize = 3;
    pub(crate) const K_CACHE: usize = 4;
    pub(crate) const V_CACHE: usize = 5;
    pub(crate) const Q: usize = 6;
    pub(crate) const Q_NORM: usize = 7;
    /// The inputs and caches of keys and values.
    pub(crate) const STORED: [usize; 6] = [K, V, K_NORM, ROPE, K_CACHE, V_CACHE];
}
