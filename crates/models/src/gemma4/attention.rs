//! The attention branch of a layer.

use rullama_engine::{
    graph::{Type, Value},
    ops::KvValues,
};

use super::{
    Kind, Layer, Pass,
    decoder::{Around, Positions},
};
use crate::build::Build;

/// Queries over the layer's cache, or its donor's, and the output projection.
pub(super) fn attention(b: &mut Build<'_>, x: Value, layer: &Layer, around: &Around<'_>) -> Value {
    let (pass, eps) = (around.pass, b.eps());
    let rope = around.positions.of(layer);
    let q = b.linear(x, "attn_q");
    let q_norm = b.weight("attn_q_norm");
    let (k_cache, v_cache) = caches(b, layer, pass);
    let q = if layer.owns_cache() {
        let kv = raw(b, x, rope, (k_cache, v_cache));
        b.graph.qkv_rope(q, q_norm, kv, eps)
    } else {
        b.graph.head_norm_rope(q, q_norm, rope, eps)
    };
    b.tap(q, format!("layer.{}.q", layer.index));
    let window = match layer.kind {
        Kind::Sliding => u32::try_from(around.config.window).ok(),
        Kind::Global => None,
    };
    let heads = b.graph.attention(q, k_cache, v_cache, window);
    b.tap(heads, format!("layer.{}.attn_heads", layer.index));
    b.linear(heads, "attn_output")
}

/// Only the cache write: the last layer of a pass that fills caches does nothing else.
pub(super) fn keys_and_values(
    b: &mut Build<'_>,
    x: Value,
    layer: &Layer,
    pass: &Pass,
    positions: &Positions,
) {
    let caches = caches(b, layer, pass);
    let kv = raw(b, x, positions.of(layer), caches);
    let eps = b.eps();
    b.graph.kv_rope(kv, eps);
}

/// Raw keys and values and where they go; values are the raw keys where the layer has no projection for them.
fn raw(b: &mut Build<'_>, x: Value, rope: Value, caches: (Value, Value)) -> KvValues {
    let k = b.linear(x, "attn_k");
    let v = if b.has("attn_v.weight") { b.linear(x, "attn_v") } else { k };
    let k_norm = b.weight("attn_k_norm");
    KvValues { k, v, k_norm, rope, k_cache: caches.0, v_cache: caches.1 }
}

/// The caches a layer reads: a ring for sliding layers.
fn caches(b: &mut Build<'_>, layer: &Layer, pass: &Pass) -> (Value, Value) {
    let slots = if layer.kind == Kind::Sliding { pass.ring } else { pass.context };
    let ty = Type::cache(pass.cache, [slots, layer.kv_heads, layer.head]);
    let k = b.graph.state(format!("k.{}", layer.donor), ty.clone());
    let v = b.graph.state(format!("v.{}", layer.donor), ty);
    (k, v)
}
