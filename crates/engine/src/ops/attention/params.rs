//! What all kernels of attention are told, and the sizes their choice depends on.

use bytemuck::NoUninit;

use super::choice::Sizes;
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Part},
    graph::{Element, Type},
    ops::parts::{kv, kv_f16_converted, kv_f16_direct},
};

static KEYS: Part = Part { kind: "keys", name: "keys", source: include_str!("keys.wgsl") };

/// Slots of a cache that positions go round in are at most so many windows: kernels are made for their number. Those of longer caches differ from
/// one context to the next.
const RING_WINDOWS: u32 = 4;

/// The parameters in `keys.wgsl`; kernels that take no raw heads leave the last ones at zero.
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

/// Sizes and parameters of queries over caches, or over keys and values of the same sequence.
pub(super) fn sizes(window: Option<u32>, call: &GpuCall<'_>) -> (Sizes, Params) {
    let &[tokens, heads, _] = call.input(0).shape.dims() else {
        unreachable!("infer has checked the shapes")
    };
    sizes_of((tokens, heads), call.input(1), window)
}

/// The same, where the queries' shape does not say how many heads there are.
pub(super) fn sizes_of(
    (tokens, heads): (usize, usize),
    cache: &Type,
    window: Option<u32>,
) -> (Sizes, Params) {
    let &[slots, kv_heads, width] = cache.shape.dims() else {
        unreachable!("infer has checked the shapes")
    };
    let params = Params {
        tokens: word(tokens),
        heads: word(heads),
        kv_heads: word(kv_heads),
        slots: word(slots),
        window: window.unwrap_or(u32::MAX),
        splits: 1,
        ..Params::default()
    };
    let keys = window.map_or(slots, |window| slots.min(window as usize + tokens - 1));
    (Sizes { tokens, heads, kv_heads, width, keys }, params)
}

/// A size that shaders count in.
pub(super) fn word(n: usize) -> u32 {
    u32::try_from(n).expect("sizes of a cache fit 32 bits")
}

/// A kernel that reads caches.
pub(super) fn over_cache(
    kernel: &'static Kernel,
    sizes: &Sizes,
    (params, cache): (Params, Element),
) -> Dispatch {
    over_any(kernel, sizes, params).part(kv(cache))
}

/// A kernel that reads caches as halves.
pub(super) fn over_halves(
    kernel: &'static Kernel,
    sizes: &Sizes,
    (params, cache): (Params, Element),
) -> Dispatch {
    let dispatch = over_any(kernel, sizes, params);
    match cache {
        Element::F16 => dispatch.part(kv_f16_direct()),
        other => dispatch.part(kv_f16_converted()).part(kv(other)),
    }
}

fn over_any(kernel: &'static Kernel, sizes: &Sizes, params: Params) -> Dispatch {
    Dispatch::new(kernel)
        .constant("WIDTH", sizes.width as u32)
        .constant("QUADS", (sizes.width / 4) as u32)
        .keys(&params)
}

impl Dispatch {
    /// With what kernels of attention know.
    pub(super) fn keys(self, params: &Params) -> Self {
        let turns = params.slots.div_ceil(RING_WINDOWS) <= params.window;
        let ring = if params.window < u32::MAX && turns { params.slots } else { 0 };
        self.part(&KEYS)
            .constant("HEADS", params.heads)
            .constant("GROUP", params.heads / params.kv_heads)
            .constant("RING", ring)
            .params(params)
    }
}
