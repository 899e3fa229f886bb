//! Norms and rotates queries and keys, norms values (see [`HeadForm`]), and stores keys and values in their KV caches: the step between the
//! projections of a layer and its attention.
//!
//! `k_cache[(position + t) % slots] = rotate(norm(k[t]) · k_norm)`, `v_cache[…] = norm(v[t])` for the live tokens, and `q` as in
//! `head_norm_rope` for all tokens.

use super::{
    gpu,
    reference::{assert_table, store_heads},
    types::{HeadForm, QkvRope, input},
};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Element, Graph, Op, Type, Value},
    ops::{Slice, sequences::Sequences},
    precision::Q8_GROUP,
};

/// The inputs of storing keys and values, and their caches.
#[derive(Debug, Clone, Copy)]
pub struct KvStoreInputs {
    /// Raw keys `[t, k·e]`.
    pub k: Slice,
    /// Raw values `[t, k·e]`; the raw keys again if a layer has no value projection.
    pub v: Slice,
    /// Weight of the keys' norm `[e]`; `rope` again if keys have none.
    pub k_norm: Value,
    /// Cosines and sines `[t, e/2, 2]`.
    pub rope: Value,
    /// State `[slots, k, e]` for normed and rotated keys.
    pub k_cache: Value,
    /// State `[slots, k, e]` for normed values.
    pub v_cache: Value,
    /// With KV pools, the sequences of the pass.
    pub sequences: Option<Sequences>,
}

impl KvStoreInputs {
    fn op(&self, graph: &Graph, form: HeadForm) -> QkvRope {
        let width = graph.ty(self.k_cache).shape.width();
        let paging = self.sequences.map(|sequences| sequences.paging);
        let (k, v) = (self.k.columns(graph), self.v.columns(graph));
        QkvRope { width, form, k, v, q: None, paging }
    }

    fn inputs(&self) -> Vec<Value> {
        vec![self.k.value, self.v.value, self.k_norm, self.rope, self.k_cache, self.v_cache]
    }
}

impl Graph {
    /// Writes keys and values to their caches; raw queries `[t, h·e]` become `[t, h, e]`, normed with `q_norm` `[e]` and rotated.
    pub fn qkv_rope(
        &mut self,
        q: impl Into<Slice>,
        q_norm: Value,
        kv: KvStoreInputs,
        form: impl Into<HeadForm>,
    ) -> Value {
        let q = q.into();
        let op = QkvRope { q: Some(q.columns(self)), ..kv.op(self, form.into()) };
        let inputs = [kv.inputs(), vec![q.value, q_norm]].concat();
        self.apply(op, &Self::with_sequences(inputs, kv.sequences))
    }

    /// Writes keys and values to their caches, for passes that need no queries.
    pub fn kv_rope(&mut self, kv: KvStoreInputs, form: impl Into<HeadForm>) {
        let inputs = Self::with_sequences(kv.inputs(), kv.sequences);
        self.apply_all(kv.op(self, form.into()), &inputs);
    }
}

impl Op for QkvRope {
    fn name(&self) -> &'static str {
        "qkv_rope"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let (k, v, t) = (inputs[input::K], inputs[input::V], inputs[input::K].shape.rows());
        let kv_heads = self.k.heads(k, self.width);
        let alike = v.shape.rows() == t && self.v.heads(v, self.width) == kv_heads;
        assert!(alike, "qkv_rope: keys {k} and values {v}");
        assert_table(inputs[input::ROPE], t, self.width);
        let (k_cache, v_cache) = (inputs[input::K_CACHE], inputs[input::V_CACHE]);
        assert_eq!(k_cache, v_cache, "qkv_rope: both caches have one type");
        assert_eq!(k_cache.shape.dims()[1..], [kv_heads, self.width], "qkv_rope: {k} to {k_cache}");
        let whole = k_cache.element != Element::Q8 || self.width.is_multiple_of(Q8_GROUP);
        assert!(whole, "heads of {} are not whole groups of {k_cache}", self.width);
        if let Some(paging) = self.paging {
            paging.check(inputs[inputs.len() - 1], t, k_cache);
        }
        let q = self.q.map(|columns| {
            let q = inputs[input::Q];
            assert_eq!(q.shape.rows(), t, "qkv_rope: queries {q} for keys {k}");
            Type::f32([t, columns.heads(q, self.width), self.width])
        });
        q.into_iter().collect()
    }

    fn writes(&self) -> &'static [usize] {
        &[input::K_CACHE, input::V_CACHE]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        store_heads(self, input::STORED, call);
        let Some(columns) = self.q else { return };
        let (width, rope) = (self.width, call.f32(input::ROPE));
        let (q, q_norm, mut y) = (call.f32(input::Q), call.decoded(input::Q_NORM), call.out(0));
        for (token, y) in y.chunks_exact_mut(columns.width).enumerate() {
            let q = columns.of(&q, call.input(input::Q), token);
            for (q, y) in q.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
                self.form.query(q, &q_norm, &rope[token * width..][..width], y);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::with_caches(self, call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let columns = self.k.width + self.v.width + self.q.map_or(0, |q| q.width);
        8 * (columns * inputs[input::K].shape.rows()) as u64
    }
}
