//! Keys and values into their caches, and the queries beside them in the same launch: what lies between the projections of a
//! layer and its attention.
//!
//! `k_cache[(position + t) % slots] = turn(norm(k[t]) · k_norm)`, `v_cache[…] = norm(v[t])` for the live tokens, and `q` as in
//! `head_norm_rope` for all tokens.

use super::{assert_table, gpu, heads, norm_turn};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Element, Graph, Op, Type, Value},
    precision::Q8_GROUP,
};

/// Head norms, rotation and cache write.
#[derive(Debug, Clone, PartialEq)]
pub struct QkvRope {
    /// Numbers in a head.
    pub width: usize,
    /// Added to the mean, inside the root.
    pub eps: f32,
}

/// Where keys and values come from and go to.
#[derive(Debug, Clone, Copy)]
pub struct KvValues {
    /// Raw keys `[t, k·e]`.
    pub k: Value,
    /// Raw values `[t, k·e]`; the raw keys again where a layer has no projection of its own for them.
    pub v: Value,
    /// Weight of the keys' norm `[e]`.
    pub k_norm: Value,
    /// Cosines and sines `[t, e/2, 2]`.
    pub rope: Value,
    /// State `[slots, k, e]` for normed, turned keys.
    pub k_cache: Value,
    /// State `[slots, k, e]` for normed values.
    pub v_cache: Value,
}

impl KvValues {
    fn inputs(&self) -> Vec<Value> {
        vec![self.k, self.v, self.k_norm, self.rope, self.k_cache, self.v_cache]
    }
}

/// Where [`KvValues::inputs`] puts things; the raw queries and the weight of their norm follow.
pub(super) mod input {
    pub(crate) const K: usize = 0;
    pub(crate) const V: usize = 1;
    pub(crate) const K_NORM: usize = 2;
    pub(crate) const ROPE: usize = 3;
    pub(crate) const K_CACHE: usize = 4;
    pub(crate) const V_CACHE: usize = 5;
    pub(crate) const Q: usize = 6;
    pub(crate) const Q_NORM: usize = 7;
}

impl Graph {
    /// Writes keys and values to their caches; raw queries `[t, h·e]` become `[t, h, e]`, normed with `q_norm` `[e]` and turned.
    pub fn qkv_rope(&mut self, q: Value, q_norm: Value, kv: KvValues, eps: f32) -> Value {
        let width = self.ty(kv.k_norm).shape.len();
        self.apply(QkvRope { width, eps }, &[kv.inputs(), vec![q, q_norm]].concat())
    }

    /// Writes keys and values to their caches, where nobody asks for the tokens' queries.
    pub fn kv_rope(&mut self, kv: KvValues, eps: f32) {
        let width = self.ty(kv.k_norm).shape.len();
        self.apply_all(QkvRope { width, eps }, &kv.inputs());
    }
}

impl Op for QkvRope {
    fn name(&self) -> &'static str {
        "qkv_rope"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let (k, t) = (inputs[input::K], inputs[input::K].shape.rows());
        let kv_heads = heads(k, self.width);
        assert_eq!(k.shape, inputs[input::V].shape, "qkv_rope: keys and values");
        assert_table(inputs[input::ROPE], t, self.width);
        let (k_cache, v_cache) = (inputs[input::K_CACHE], inputs[input::V_CACHE]);
        assert_eq!(k_cache, v_cache, "qkv_rope: both caches have one type");
        assert_eq!(k_cache.shape.dims()[1..], [kv_heads, self.width], "qkv_rope: {k} to {k_cache}");
        let whole = k_cache.element != Element::Q8 || self.width.is_multiple_of(Q8_GROUP);
        assert!(whole, "heads of {} are no whole groups of {k_cache}", self.width);
        let q = inputs.get(input::Q).map(|q| {
            assert_eq!(q.shape.rows(), t, "qkv_rope: queries {q} beside keys {k}");
            Type::f32([t, heads(q, self.width), self.width])
        });
        q.into_iter().collect()
    }

    fn writes(&self) -> &'static [usize] {
        &[input::K_CACHE, input::V_CACHE]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (width, rope) = (self.width, call.f32(input::ROPE));
        let turns = |token: usize| &rope[token * width..][..width];
        let cache = &call.input(input::K_CACHE).shape;
        let (slots, row) = (cache.dims()[0], cache.dims()[1] * width);
        let (k, v, k_norm) = (call.f32(input::K), call.f32(input::V), call.numbers(input::K_NORM));
        let mut made = vec![0.0; width];
        for token in 0..(call.step.count as usize).min(k.len() / row) {
            let slot = (call.step.position as usize + token) % slots;
            for at in (0..row).step_by(width) {
                let head = token * row + at..token * row + at + width;
                norm_turn(&k[head.clone()], Some(&k_norm), Some(turns(token)), self.eps, &mut made);
                call.store(input::K_CACHE, slot * row + at, &made);
                norm_turn(&v[head], None, None, self.eps, &mut made);
                call.store(input::V_CACHE, slot * row + at, &made);
            }
        }
        if call.inputs() > input::Q {
            let (q, q_norm, mut y) = (call.f32(input::Q), call.numbers(input::Q_NORM), call.out(0));
            let row = call.input(input::Q).shape.width();
            for (i, (q, y)) in q.chunks_exact(width).zip(y.chunks_exact_mut(width)).enumerate() {
                norm_turn(q, Some(&q_norm), Some(turns(i * width / row)), self.eps, y);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::with_caches(self, call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let made = [input::K, input::V, input::Q];
        made.iter().filter_map(|i| inputs.get(*i)).map(|ty| 8 * ty.shape.len() as u64).sum()
    }
}
