//! The input of kernel selection, and the parameters that all kernels over a KV cache share.

use bytemuck::NoUninit;

use super::mask::Mask;
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Part},
    graph::{Element, Type},
    ops::{
        parts::{kv, kv_f16_converted, kv_f16_direct},
        sequences::Paging,
    },
};

static INDEXING: Part =
    Part { kind: "indexing", name: "indexing", source: include_str!("indexing.wgsl") };

/// Kernels are specialised for the number of slots of a ring buffer (a sliding-window KV cache) of up to this number of windows. The slots of
/// longer caches depend on the context length.
const RING_WINDOWS: u32 = 4;

/// An attention problem for kernel selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) tokens: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    /// Elements per head.
    pub(super) width: usize,
    /// Slots of the KV cache, or the number of keys without a cache.
    pub(super) slots: usize,
    pub(super) mask: Mask,
    /// Whether queries come raw from their projection: the kernel norms and rotates them.
    pub(super) raw_queries: bool,
    /// With a KV pool, its paging; `slots` is then the length of a sequence's context.
    pub(super) pool: Option<Pool>,
}

/// A KV pool, as kernels see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pool {
    paging: Paging,
    /// Slots of all pages.
    slots: usize,
}

impl Problem {
    /// Normed and rotated queries (input 0 of an op) over its inputs 1 and 2.
    pub(super) fn new(mask: Mask, call: &GpuCall<'_>) -> Self {
        let &[tokens, heads, _] = call.input(0).shape.dims() else {
            unreachable!("infer has checked the shapes")
        };
        Self { raw_queries: false, ..Self::raw(mask, tokens, heads, call.input(1)) }
    }

    /// Raw queries over a KV cache of this type.
    pub(super) fn raw(mask: Mask, tokens: usize, heads: usize, cache: &Type) -> Self {
        let &[slots, kv_heads, width] = cache.shape.dims() else {
            unreachable!("infer has checked the shapes")
        };
        Self { tokens, heads, kv_heads, width, slots, mask, raw_queries: true, pool: None }
    }

    /// Over a KV pool, if there is paging.
    pub(super) fn paged(self, paging: Option<Paging>) -> Self {
        let Some(paging) = paging else { return self };
        let pool = Some(Pool { paging, slots: self.slots });
        Self { slots: paging.context, pool, ..self }
    }

    /// The sequences of an op over a KV pool, its last input: the input's index and type.
    pub(super) fn sequences<'a>(&self, call: &GpuCall<'a>) -> Option<(Paging, usize, &'a Type)> {
        let last = call.inputs() - 1;
        self.pool.map(|pool| (pool.paging, last, call.input(last)))
    }

    /// Binds the sequences, after all other bindings.
    pub(super) fn with_sequences(&self, dispatch: Dispatch, call: &GpuCall<'_>) -> Dispatch {
        match self.sequences(call) {
            Some((paging, input, ty)) => dispatch.sequences(paging, input, ty),
            None => dispatch,
        }
    }

    /// The maximum number of keys that a pass reads.
    pub(super) fn keys(&self) -> usize {
        let window = self.mask.window().map(|window| window as usize + self.tokens - 1);
        window.map_or(self.slots, |keys| keys.min(self.slots))
    }

    /// Rows of queries that share a kv head.
    pub(super) fn rows(&self) -> usize {
        self.tokens * self.heads / self.kv_heads
    }

    /// The head dimension in vec4s.
    pub(super) fn vec4s(&self) -> usize {
        self.width / 4
    }

    /// The parameters of kernels that do not norm queries or split keys.
    pub(super) fn params(&self) -> Params {
        Params {
            tokens: word(self.tokens),
            heads: word(self.heads),
            kv_heads: word(self.kv_heads),
            slots: word(self.pool.map_or(self.slots, |pool| pool.slots)),
            window: self.mask.window().unwrap_or(u32::MAX),
            splits: 1,
            ..Params::default()
        }
    }

    /// A kernel that reads a KV cache as f32.
    pub(super) fn over_cache(
        &self,
        kernel: &'static Kernel,
        params: &Params,
        cache: Element,
    ) -> Dispatch {
        self.dispatch(kernel, params).part(kv(cache))
    }

    /// A kernel that reads a KV cache as f16.
    pub(super) fn over_cache_f16(
        &self,
        kernel: &'static Kernel,
        params: &Params,
        cache: Element,
    ) -> Dispatch {
        let dispatch = self.dispatch(kernel, params);
        match cache {
            Element::F16 => dispatch.part(kv_f16_direct()),
            other => dispatch.part(kv_f16_converted()).part(kv(other)),
        }
    }

    fn dispatch(&self, kernel: &'static Kernel, params: &Params) -> Dispatch {
        Dispatch::new(kernel)
            .constant("WIDTH", word(self.width))
            .constant("DIM4", word(self.vec4s()))
            .indexing(params)
    }
}

/// The parameters in `indexing.wgsl`; kernels without raw heads leave the last ones zero.
#[derive(Debug, Clone, Copy, Default, NoUninit)]
#[repr(C)]
pub(super) struct Params {
    pub(super) tokens: u32,
    pub(super) heads: u32,
    pub(super) kv_heads: u32,
    pub(super) slots: u32,
    pub(super) window: u32,
    pub(super) splits: u32,
    pub(super) row_blocks: u32,
    pub(super) eps: f32,
    pub(super) q_first: u32,
    pub(super) q_stride: u32,
    pub(super) k_first: u32,
    pub(super) k_stride: u32,
    pub(super) v_first: u32,
    pub(super) v_stride: u32,
    pub(super) token_blocks: u32,
    pub(super) phase: u32,
}

/// A size as u32.
pub(super) fn word(n: usize) -> u32 {
    u32::try_from(n).expect("sizes of a cache fit 32 bits")
}

impl Dispatch {
    /// Sets the parameters of attention and the constants for indexing rows and slots.
    pub(super) fn indexing(self, params: &Params) -> Self {
        let is_ring = params.slots.div_ceil(RING_WINDOWS) <= params.window;
        let ring = if params.window < u32::MAX && is_ring { params.slots } else { 0 };
        self.part(&INDEXING)
            .constant("HEADS", params.heads)
            .constant("GROUP", params.heads / params.kv_heads)
            .constant("RING_SLOTS", ring)
            .params(params)
    }
}
