//! Attention of a few tokens from the raw products of a layer: the norms and rotation of [`QkvRope`], its writes to the caches
//! and [`Attention`], without dispatches of their own.

use super::{
    Attention,
    choice::{Cut, FEW_TOKENS},
    params::{Params, sizes_of, word},
    reference::Reference,
    split::{Lie, Source, split, split_apart},
};
use crate::{
    cpu::CpuCall,
    gpu::{DeviceFacts, Dispatch, GpuCall, HeadParts, Order},
    graph::{Graph, Op, Step, Type, Value},
    ops::{
        Columns, KvStoreInputs, QkvRope, Slice,
        head_norm_rope::{assert_table, gpu::store, norm_rope, store_heads},
    },
};

/// Attention from raw products.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionQkv {
    /// How many positions a token sees, itself included; all if there is no window.
    pub window: Option<u32>,
    /// Added to the means of the norms, inside the root.
    pub eps: f32,
    /// Where the queries' heads lie in their rows.
    pub q: Columns,
    /// Where the keys' and values' do, if the layer writes its caches.
    pub kv: Option<[Columns; 2]>,
}

/// The queries of a layer and the caches they look into.
#[derive(Debug, Clone, Copy)]
pub struct QueryValues {
    /// Raw queries `[t, h·e]`.
    pub q: Slice,
    /// Weight of their norm `[e]`.
    pub q_norm: Value,
    /// Cosines and sines `[t, e/2, 2]`.
    pub rope: Value,
    /// State `[slots, k, e]` of normed, turned keys.
    pub k_cache: Value,
    /// State `[slots, k, e]` of normed values.
    pub v_cache: Value,
}

/// The keys and values a layer adds to its caches.
#[derive(Debug, Clone, Copy)]
pub struct OwnValues {
    /// Raw keys `[t, k·e]`.
    pub k: Slice,
    /// Raw values `[t, k·e]`; the raw keys again where a layer has no projection of its own for them.
    pub v: Slice,
    /// Weight of the keys' norm `[e]`.
    pub k_norm: Value,
}

/// Inputs by number; the last three only where the layer writes its caches.
mod input {
    pub(super) const Q: usize = 0;
    pub(super) const Q_NORM: usize = 1;
    pub(super) const ROPE: usize = 2;
    pub(super) const K_CACHE: usize = 3;
    pub(super) const V_CACHE: usize = 4;
    pub(super) const K: usize = 5;
    pub(super) const V: usize = 6;
    pub(super) const K_NORM: usize = 7;
}

/// What `QkvRope` takes, as this operation's inputs.
const STORED: [usize; 6] =
    [input::K, input::V, input::K_NORM, input::ROPE, input::K_CACHE, input::V_CACHE];

impl Graph {
    /// Raw queries over caches, to which a layer that owns them first adds its keys and values: `[t, h·e]`.
    ///
    /// A few tokens take one operation, more take [`Graph::qkv_rope`] (or [`Graph::head_norm_rope`]) and
    /// [`Graph::attention`]. With a window, `slots` is at least `window + t − 1`, or no run goes beyond it.
    pub fn attention_qkv(
        &mut self,
        queries: QueryValues,
        own: Option<OwnValues>,
        window: Option<u32>,
        eps: f32,
    ) -> Value {
        let QueryValues { q, q_norm, rope, k_cache, v_cache } = queries;
        if self.ty(q.value).shape.rows() <= FEW_TOKENS {
            let columns = |slice: Slice| slice.columns(self);
            let kv = own.map(|own| [columns(own.k), columns(own.v)]);
            let op = AttentionQkv { window, eps, q: columns(q), kv };
            let mut inputs = vec![q.value, q_norm, rope, k_cache, v_cache];
            inputs.extend(own.iter().flat_map(|own| [own.k.value, own.v.value, own.k_norm]));
            return self.apply(op, &inputs);
        }
        let q = match own {
            None => self.head_norm_rope(q, q_norm, rope, eps),
            Some(OwnValues { k, v, k_norm }) => self.qkv_rope(
                q,
                q_norm,
                KvStoreInputs { k, v, k_norm, rope, k_cache, v_cache },
                eps,
            ),
        };
        self.attention(q, k_cache, v_cache, window)
    }
}

impl AttentionQkv {
    /// The part of it that writes the caches.
    fn storing(&self, width: usize) -> Option<QkvRope> {
        self.kv.map(|[k, v]| QkvRope { width, eps: self.eps, k, v, q: None })
    }
}

impl Op for AttentionQkv {
    fn name(&self) -> &'static str {
        "attention_qkv"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let (q, t) = (inputs[input::Q], inputs[input::Q].shape.rows());
        let width = inputs[input::Q_NORM].shape.len();
        assert!(t <= FEW_TOKENS, "attention_qkv: {t} tokens, {FEW_TOKENS} at most");
        assert_table(inputs[input::ROPE], t, width);
        if let Some(storing) = self.storing(width) {
            storing.infer(&STORED.map(|i| inputs[i]));
            assert_eq!(inputs[input::K].shape.rows(), t, "attention_qkv: keys beside {q}");
        }
        let turned = Type::f32([t, self.q.heads(q, width), width]);
        let attention = Attention { window: self.window };
        attention.infer(&[&turned, inputs[input::K_CACHE], inputs[input::V_CACHE]])
    }

    fn writes(&self) -> &'static [usize] {
        if self.kv.is_some() { &[input::K_CACHE, input::V_CACHE] } else { &[] }
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let width = call.input(input::Q_NORM).shape.len();
        if let Some(storing) = self.storing(width) {
            store_heads(&storing, STORED, call);
        }
        let (q, rope) = (call.f32(input::Q), call.f32(input::ROPE));
        let q_norm = call.numbers(input::Q_NORM);
        let mut turned = vec![0.0; call.output(0).shape.len()];
        for (token, turned) in turned.chunks_exact_mut(self.q.width).enumerate() {
            let q = self.q.of(&q, call.input(input::Q), token);
            for (q, turned) in q.chunks_exact(width).zip(turned.chunks_exact_mut(width)) {
                let turns = &rope[token * width..][..width];
                norm_rope(q, Some(&q_norm), Some(turns), self.eps, turned);
            }
        }
        let (k, v) = (call.f32(input::K_CACHE), call.f32(input::V_CACHE));
        let reference = Reference {
            q: &turned,
            heads: self.q.width / width,
            k: &k,
            v: &v,
            cache: call.input(input::K_CACHE),
            blocks: None,
            spans: None,
            step: call.step,
        };
        reference.attend(&Attention { window: self.window }, &mut call.out(0));
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let (q, cache) = (call.input(input::Q), call.input(input::K_CACHE));
        let width = cache.shape.width();
        let (t, heads) = (q.shape.rows(), self.q.heads(q, width));
        let (sizes, params) = sizes_of((t, heads), cache, self.window);
        let [(q_first, q_stride), (k_first, k_stride), (v_first, v_stride)] = self.places(call);
        let params = Params {
            eps: self.eps,
            q_first,
            q_stride,
            k_first,
            k_stride,
            v_first,
            v_stride,
            ..params
        };
        let (apart, cut) = (call.tokens_apart() && t > 1, self.cut(call));
        let (q, caches) =
            ([input::Q, input::Q_NORM, input::ROPE], [input::K_CACHE, input::V_CACHE]);
        let cache = (params, cache.element);
        let lie = match call.result_parts(0) {
            Some(parts) => Lie::Parts(parts),
            None => Lie::Rows(call.result_order(0)),
        };
        let split = |source| match apart {
            true => split_apart((&sizes, &cut), cache, (source, lie), call.facts),
            false => split((&sizes, &cut), cache, (source, lie), call.facts),
        };
        let shared = || split(Source::Shared { q, caches });
        match self.storing(width) {
            None => shared(),
            Some(_) if fuses(call.facts) => {
                let kv = [input::K, input::V, input::K_NORM];
                split(Source::Own { q, caches, kv })
            }
            Some(storing) => [store(&storing, STORED, call)].into_iter().chain(shared()).collect(),
        }
    }

    fn lays(&self, call: &GpuCall<'_>, _: usize, order: Order) -> Option<Order> {
        (self.cut(call).splits > 1).then_some(order.of_floats())
    }

    fn leaves_parts(&self, call: &GpuCall<'_>, _: usize) -> Option<HeadParts> {
        let (q, cut) = (call.input(input::Q), self.cut(call));
        let width = call.input(input::K_CACHE).shape.width();
        // The run's own tokens stand apart where they are stored on the way.
        let apart = self.kv.is_some() && fuses(call.facts);
        let parts = HeadParts {
            heads: self.q.heads(q, width),
            quads: width / 4,
            splits: cut.splits + usize::from(apart),
            tile: cut.tile(),
            apart,
            window: self.window.unwrap_or(u32::MAX),
            tokens: q.shape.rows(),
            met: None,
        };
        cut.reader_combines().then_some(parts)
    }

    fn operations(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        let slots = inputs[input::K_CACHE].shape.dims()[0];
        let keys = self.window.map_or(slots, |window| slots.min(window as usize));
        4 * outputs[0].shape.len() as u64 * keys as u64
    }

    fn bytes_read(&self, inputs: &[&Type], step: &Step) -> u64 {
        let caches = Attention { window: self.window };
        let queries = [inputs[input::Q], inputs[input::K_CACHE], inputs[input::V_CACHE]];
        let others = inputs
            .iter()
            .enumerate()
            .filter(|(i, _)| ![input::Q, input::K_CACHE, input::V_CACHE].contains(i));
        caches.bytes_read(&queries, step) + others.map(|(_, ty)| ty.bytes()).sum::<u64>()
    }
}

impl AttentionQkv {
    /// How keys are dealt out; tokens that are computed apart are cut as if each were alone.
    fn cut(&self, call: &GpuCall<'_>) -> Cut {
        let (q, cache) = (call.input(input::Q), call.input(input::K_CACHE));
        let tokens = if call.tokens_apart() { 1 } else { q.shape.rows() };
        let heads = self.q.heads(q, cache.shape.width());
        Cut::new(&sizes_of((tokens, heads), cache, self.window).0, call.facts)
    }

    /// First quad of the raw queries, keys and values in their rows, and quads of a row.
    fn places(&self, call: &GpuCall<'_>) -> [(u32, u32); 3] {
        let place = |columns: Columns, i: usize| {
            (word(columns.first / 4), word(call.input(i).shape.width() / 4))
        };
        let kv = self.kv.map(|[k, v]| [place(k, input::K), place(v, input::V)]);
        let [k, v] = kv.unwrap_or_default();
        [place(self.q, input::Q), k, v]
    }
}

/// Whether a kernel can bind all it takes to write the caches and read them in one dispatch.
fn fuses(facts: &DeviceFacts) -> bool {
    const BUFFERS: u32 = 9;
    facts.storage_buffers >= BUFFERS
}

#[cfg(test)]
mod tests {
    use super::fuses;
    use crate::gpu::DeviceFacts;

    #[test]
    fn caches_are_written_beside_where_nine_buffers_can_be_bound() {
        assert!(!fuses(&DeviceFacts::floor()));
        assert!(fuses(&DeviceFacts { storage_buffers: 10, ..DeviceFacts::floor() }));
    }
}
