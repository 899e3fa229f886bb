//! One workgroup per head and token. Queries, keys and values go in one launch where a kernel may bind nine buffers, else in
//! two.

use bytemuck::NoUninit;

use super::{
    HeadNormRope, QkvRope, heads,
    qkv::input::{K, K_CACHE, K_NORM, Q, Q_NORM, ROPE, V, V_CACHE},
};
use crate::{
    gpu::{DeviceFacts, Dispatch, GpuCall, Kernel, Part, Place},
    ops::parts::{kv_store, reduce},
};

static FORWARD: Kernel =
    Kernel { name: "head_norm_rope/forward", source: include_str!("forward.wgsl") };
static BARE: Part = Part { kind: "heads", name: "bare", source: include_str!("bare.wgsl") };
static TURNED: Part = Part { kind: "heads", name: "turned", source: include_str!("turned.wgsl") };
static KV: Part = Part { kind: "heads", name: "kv", source: include_str!("kv.wgsl") };
static QKV: Part = Part { kind: "heads", name: "qkv", source: include_str!("qkv.wgsl") };
static KV_HEADS: Part =
    Part { kind: "kv_heads", name: "kv_heads", source: include_str!("kv_heads.wgsl") };

/// Buffers of the launch that makes queries, keys and values.
const FUSED_BUFFERS: u32 = 9;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    eps: f32,
    heads: u32,
    kv_heads: u32,
    slots: u32,
}

pub(super) fn plain(op: &HeadNormRope, call: &GpuCall<'_>) -> Dispatch {
    let x = call.input(0);
    let (t, heads) = (x.shape.rows(), heads(x, op.width));
    let turned = call.inputs() > 1;
    let params = Params { eps: op.eps, heads: heads as u32, kv_heads: 0, slots: 0 };
    let dispatch = launch(op.width, call.facts)
        .part(if turned { &TURNED } else { &BARE })
        .params(&params)
        .read(Place::Input(0))
        .grid(heads, t, 1);
    if turned {
        return dispatch.read(Place::Input(1)).read(Place::Input(2)).write(Place::Output(0));
    }
    dispatch.write(Place::Output(0))
}

pub(super) fn with_caches(op: &QkvRope, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let (k, cache) = (call.input(K), call.input(K_CACHE));
    let (t, kv_heads) = (k.shape.rows(), heads(k, op.width));
    let q_heads = if call.inputs() > Q { heads(call.input(Q), op.width) } else { 0 };
    let fused = q_heads > 0 && fuses(call.facts);
    let slots = u32::try_from(cache.shape.dims()[0]).expect("slots are positions");
    let params = Params { eps: op.eps, heads: q_heads as u32, kv_heads: kv_heads as u32, slots };
    let kv = launch(op.width, call.facts)
        .part(if fused { &QKV } else { &KV })
        .part(&KV_HEADS)
        .part(kv_store(cache.element))
        .params(&params)
        .read(Place::Input(K))
        .read(Place::Input(V))
        .read(Place::Input(K_NORM))
        .read(Place::Input(ROPE))
        .write(Place::Input(K_CACHE))
        .write(Place::Input(V_CACHE));
    if fused {
        let all = kv.read(Place::Input(Q)).read(Place::Input(Q_NORM)).write(Place::Output(0));
        return vec![all.grid(q_heads + 2 * kv_heads, t, 1)];
    }
    let kv = kv.grid(2 * kv_heads, t, 1);
    if q_heads == 0 {
        return vec![kv];
    }
    let q = launch(op.width, call.facts)
        .part(&TURNED)
        .params(&params)
        .read(Place::Input(Q))
        .read(Place::Input(Q_NORM))
        .read(Place::Input(ROPE))
        .write(Place::Output(0))
        .grid(q_heads, t, 1);
    vec![q, kv]
}

fn launch(width: usize, facts: &DeviceFacts) -> Dispatch {
    Dispatch::new(&FORWARD)
        .part(reduce(facts))
        .constant("WIDTH", width as u32)
        .constant("HALF", width as u32 / 2)
        .constant("WG", lanes(width) as u32)
}

/// A lane per pair of a head, as far as a workgroup goes.
pub(super) fn lanes(width: usize) -> usize {
    (width / 2).next_power_of_two().clamp(32, 256)
}

fn fuses(facts: &DeviceFacts) -> bool {
    facts.storage_buffers >= FUSED_BUFFERS
}

#[cfg(test)]
mod tests {
    use super::{fuses, lanes};
    use crate::gpu::DeviceFacts;

    #[test]
    fn lanes_follow_the_head() {
        for (width, want) in [(16, 32), (48, 32), (64, 32), (256, 128), (512, 256), (1024, 256)] {
            assert_eq!(lanes(width), want, "heads of {width}");
        }
    }

    #[test]
    fn one_launch_where_nine_buffers_can_be_bound() {
        assert!(!fuses(&DeviceFacts::floor()));
        assert!(fuses(&DeviceFacts { storage_buffers: 10, ..DeviceFacts::floor() }));
    }
}
