//! One workgroup per head and token. Queries, keys and values take one dispatch if a kernel may bind nine buffers, else two.

use bytemuck::NoUninit;

use super::types::{
    HeadForm, HeadNormRope, QkvRope,
    input::{Q, Q_NORM, ROPE, STORED},
};
use crate::{
    gpu::{BufferRef, DeviceFacts, Dispatch, GpuCall, Kernel, Part},
    graph::Type,
    ops::{
        Columns,
        parts::{kv, kv_store, reduce},
    },
};

static FORWARD: Kernel =
    Kernel { name: "head_norm_rope/forward", source: include_str!("forward.wgsl") };
static NORM_ONLY: Part =
    Part { kind: "heads", name: "heads/norm_only", source: include_str!("heads/norm_only.wgsl") };
static ROTATED: Part =
    Part { kind: "heads", name: "heads/rotated", source: include_str!("heads/rotated.wgsl") };
static KV: Part = Part { kind: "heads", name: "heads/kv", source: include_str!("heads/kv.wgsl") };
static QKV: Part =
    Part { kind: "heads", name: "heads/qkv", source: include_str!("heads/qkv.wgsl") };
static KV_HEADS: Part =
    Part { kind: "kv_heads", name: "kv_heads", source: include_str!("kv_heads.wgsl") };

/// Storage buffers of the dispatch that norms and rotates queries, keys and values at once.
const FUSED_BUFFERS: u32 = 9;

#[derive(Clone, Copy, Default, NoUninit)]
#[repr(C)]
struct Params {
    eps: f32,
    heads: u32,
    kv_heads: u32,
    slots: u32,
    q_first: u32,
    q_stride: u32,
    k_first: u32,
    k_stride: u32,
    v_first: u32,
    v_stride: u32,
}

pub(super) fn plain(op: &HeadNormRope, call: &GpuCall<'_>) -> Dispatch {
    let x = call.input(0);
    let (t, heads) = (x.shape.rows(), op.columns.heads(x, op.width));
    let rotated = call.inputs() > 1;
    let (q_first, q_stride) = place(op.columns, x);
    let params =
        Params { eps: op.form.eps, heads: heads as u32, q_first, q_stride, ..Params::default() };
    let dispatch = head_dispatch(op.width, (op.form, op.axes), call.facts)
        .part(if rotated { &ROTATED } else { &NORM_ONLY })
        .params(&params)
        .read(BufferRef::Input(0))
        .grid(heads, t, 1);
    if rotated {
        return dispatch
            .read(BufferRef::Input(1))
            .read(BufferRef::Input(2))
            .write(BufferRef::Output(0));
    }
    dispatch.write(BufferRef::Output(0))
}

pub(super) fn with_caches(op: &QkvRope, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let Some(columns) = op.q else { return vec![store(op, STORED, call)] };
    let (q, t) = (call.input(Q), call.input(Q).shape.rows());
    let heads = columns.heads(q, op.width);
    let params = kv_params(op, STORED, call);
    let (q_first, q_stride) = place(columns, q);
    let params = Params { heads: heads as u32, q_first, q_stride, ..params };
    if fuses(call.facts, op.paging.is_some()) {
        let all = kv_dispatch(op, STORED, call).part(&QKV).params(&params);
        let all = all
            .read(BufferRef::Input(Q))
            .read(BufferRef::Input(Q_NORM))
            .write(BufferRef::Output(0));
        let all = with_sequences(op, all, call);
        return vec![all.grid(heads + 2 * params.kv_heads as usize, t, 1)];
    }
    let q = head_dispatch(op.width, (op.form, 1), call.facts)
        .part(&ROTATED)
        .params(&params)
        .read(BufferRef::Input(Q))
        .read(BufferRef::Input(Q_NORM))
        .read(BufferRef::Input(ROPE))
        .write(BufferRef::Output(0))
        .grid(heads, t, 1);
    vec![q, store(op, STORED, call)]
}

/// Stores keys and values in their KV caches. `inputs` are indices of the op's inputs: raw keys, raw values, the keys' norm, the RoPE table and
/// both caches.
pub(crate) fn store(op: &QkvRope, inputs: [usize; 6], call: &GpuCall<'_>) -> Dispatch {
    let params = kv_params(op, inputs, call);
    let t = call.input(inputs[0]).shape.rows();
    let dispatch = kv_dispatch(op, inputs, call).part(&KV).params(&params);
    let dispatch = with_sequences(op, dispatch, call);
    dispatch.grid(2 * params.kv_heads as usize, t, 1)
}

fn kv_params(op: &QkvRope, [k, v, _, _, cache, _]: [usize; 6], call: &GpuCall<'_>) -> Params {
    let (k, v, cache) = (call.input(k), call.input(v), call.input(cache));
    let slots = u32::try_from(cache.shape.dims()[0]).expect("slots are positions");
    let ((k_first, k_stride), (v_first, v_stride)) = (place(op.k, k), place(op.v, v));
    let kv_heads = op.k.heads(k, op.width) as u32;
    let eps = op.form.eps;
    Params { eps, kv_heads, slots, k_first, k_stride, v_first, v_stride, ..Params::default() }
}

fn kv_dispatch(op: &QkvRope, inputs: [usize; 6], call: &GpuCall<'_>) -> Dispatch {
    let cache = call.input(inputs[4]).element;
    let dispatch = head_dispatch(op.width, (op.form, 1), call.facts)
        .part(&KV_HEADS)
        .part(kv(cache))
        .part(kv_store(cache));
    let dispatch = inputs[..4].iter().copied().map(BufferRef::Input).fold(dispatch, Dispatch::read);
    dispatch.write(BufferRef::Input(inputs[4])).write(BufferRef::Input(inputs[5]))
}

/// Binds the sequences of the pass, the last input, if the KV caches are pools of pages.
fn with_sequences(op: &QkvRope, dispatch: Dispatch, call: &GpuCall<'_>) -> Dispatch {
    let last = call.inputs() - 1;
    match op.paging {
        Some(paging) => dispatch.sequences(paging, last, call.input(last)),
        None => dispatch,
    }
}

/// First element of a token's heads, and the stride between tokens in elements.
fn place(columns: Columns, x: &Type) -> (u32, u32) {
    let word = |n: usize| u32::try_from(n).expect("rows of activations are short");
    (word(columns.first), word(x.shape.width()))
}

fn head_dispatch(width: usize, (form, axes): (HeadForm, usize), facts: &DeviceFacts) -> Dispatch {
    let dispatch = Dispatch::new(&FORWARD)
        .part(reduce(facts))
        .constant("WIDTH", width as u32)
        .constant("HALF", width as u32 / 2)
        .constant("PAIR_STRIDE", form.stride(width, axes) as u32)
        .constant("WG", lanes(width) as u32);
    form.norms(dispatch)
}

impl HeadForm {
    /// Sets the constants of kernels that norm heads, if they are not the defaults.
    pub(crate) fn norms(self, dispatch: Dispatch) -> Dispatch {
        let dispatch = if self.qk_norm { dispatch } else { dispatch.constant("QK_NORM", 0u32) };
        if self.v_norm { dispatch } else { dispatch.constant("V_NORM", 0u32) }
    }
}

/// One lane per RoPE pair of a head, up to the maximum workgroup size.
pub(super) fn lanes(width: usize) -> usize {
    (width / 2).next_power_of_two().clamp(32, 256)
}

fn fuses(facts: &DeviceFacts, paged: bool) -> bool {
    facts.storage_buffers >= FUSED_BUFFERS + u32::from(paged)
}

#[cfg(test)]
mod tests {
    use super::{fuses, lanes};
    use crate::gpu::DeviceFacts;

    #[test]
    fn lanes_by_head_width() {
        for (width, want) in [(16, 32), (48, 32), (64, 32), (256, 128), (512, 256), (1024, 256)] {
            assert_eq!(lanes(width), want, "heads of {width}");
        }
    }

    #[test]
    fn one_dispatch_if_nine_buffers_can_be_bound() {
        assert!(!fuses(&DeviceFacts::floor(), false));
        let nine = DeviceFacts { storage_buffers: 9, ..DeviceFacts::floor() };
        assert!(fuses(&nine, false) && !fuses(&nine, true));
    }
}
