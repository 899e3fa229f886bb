//! The attention branch of a layer.

use rullama_engine::{
    graph::{Type, Value},
    ops::{KvValues, OwnValues, QueryValues, Slice},
};

use super::{Inputs, Kind, Layer, Pass, TrainPass, decoder::Around, diffusion::spans_name};
use crate::build::{Build, Stream};

/// The stream, and the output projection of queries over the layer's cache, or its donor's.
pub(super) fn attention(
    b: &mut Build<'_>,
    stream: Stream,
    layer: &Layer,
    around: &Around<'_>,
) -> (Value, Value) {
    let (h, raw) = products(b, stream, layer);
    if b.trains() {
        let heads = over_itself(b, &raw, layer, around);
        return (h, b.branch(heads, "attn_output", "ffn_gate"));
    }
    let (k_cache, v_cache) = caches(b, layer, around.pass);
    let queries = QueryValues {
        q: raw[0],
        q_norm: b.weight("attn_q_norm"),
        rope: around.positions(b, layer),
        k_cache,
        v_cache,
    };
    let own = layer.owns_cache().then(|| own(b, &raw));
    if b.traced() {
        heads_before_turning(b, &queries, own.as_ref(), layer, around.pass.tokens);
    }
    let window = around.window(layer);
    let eps = b.eps();
    let heads = match window.filter(|_| around.pass.blocks) {
        _ if around.canvas => on_canvas(b, &queries, own, (layer.kind, around.pass.tokens)),
        Some(window) => in_blocks(b, &queries, own, window, around.pass.tokens),
        None => b.graph.attention_qkv(queries, own, window, eps),
    };
    b.tap(heads, format!("layer.{}.attn_heads", layer.index));
    (h, b.branch(heads, "attn_output", "ffn_gate"))
}

/// Attention of a whole sequence over itself, where gradients are wanted: without caches.
fn over_itself(b: &mut Build<'_>, raw: &[Slice], layer: &Layer, around: &Around<'_>) -> Value {
    let (eps, rope, q_norm) = (b.eps(), around.positions(b, layer), b.weight("attn_q_norm"));
    let q = b.graph.head_norm_rope(raw[0], q_norm, rope, eps);
    if layer.owns_cache() {
        let OwnValues { k, v, k_norm } = own(b, raw);
        let k = b.graph.head_norm_rope(k, k_norm, rope, eps);
        let v = b.graph.head_norm(v, layer.head, eps);
        b.training.as_mut().map(|training| training.keys.insert(layer.index, (k, v)));
    }
    let known = b.training.as_ref().and_then(|training| training.keys.get(&layer.donor));
    let (k, v) = *known.expect("a donor comes before the layers that share its keys");
    let starts = b.input(TrainPass::STARTS, Type::u32([around.pass.tokens]));
    b.graph.attention_train(q, (k, v), starts, around.window(layer))
}

/// Attention where tokens of a block see all of it: the keys and values of the whole block come first.
fn in_blocks(
    b: &mut Build<'_>,
    queries: &QueryValues,
    own: Option<OwnValues>,
    window: u32,
    tokens: usize,
) -> Value {
    let (eps, QueryValues { rope, k_cache, v_cache, .. }) = (b.eps(), *queries);
    if let Some(OwnValues { k, v, k_norm }) = own {
        b.graph.kv_rope(KvValues { k, v, k_norm, rope, k_cache, v_cache }, eps);
    }
    let q = b.graph.head_norm_rope(queries.q, queries.q_norm, rope, eps);
    let blocks = b.input(Inputs::BLOCKS, Type::u32([tokens]));
    b.graph.attention_blocks(q, (k_cache, v_cache), window, blocks)
}

/// Attention of the places of a canvas: its keys and values stand behind the prompt's for the time of a run.
fn on_canvas(
    b: &mut Build<'_>,
    queries: &QueryValues,
    own: Option<OwnValues>,
    (kind, tokens): (Kind, usize),
) -> Value {
    let (eps, QueryValues { rope, k_cache, v_cache, .. }) = (b.eps(), *queries);
    if let Some(OwnValues { k, v, k_norm }) = own {
        b.graph.kv_rope(KvValues { k, v, k_norm, rope, k_cache, v_cache }, eps);
    }
    let q = b.graph.head_norm_rope(queries.q, queries.q_norm, rope, eps);
    let spans = b.input(spans_name(kind), Type::u32([tokens, 2]));
    b.graph.attention_spans(q, k_cache, v_cache, spans)
}

/// Heads behind their norms, before they are turned: made only to be seen, since attention makes both at once.
fn heads_before_turning(
    b: &mut Build<'_>,
    queries: &QueryValues,
    own: Option<&OwnValues>,
    layer: &Layer,
    tokens: usize,
) {
    let name = |what: &str| format!("layer.{}.{what}_normed", layer.index);
    let eps = b.eps();
    let unturned = b.unturned(tokens, layer.head);
    let q = b.graph.head_norm_rope(queries.q, queries.q_norm, unturned, eps);
    b.tap(q, name("q"));
    if let Some(own) = own {
        let k = b.graph.head_norm_rope(own.k, own.k_norm, unturned, eps);
        b.tap(k, name("k"));
        let v = b.graph.head_norm(own.v, layer.head, eps);
        b.tap(v, name("v"));
    }
}

/// Only the cache write: the last layer of a pass that fills caches does nothing else.
pub(super) fn keys_and_values(
    b: &mut Build<'_>,
    stream: Stream,
    layer: &Layer,
    around: &Around<'_>,
) {
    // The queries come with the keys and values where they are stored as one weight.
    let (_, raw) = products(b, stream, layer);
    let (k_cache, v_cache) = caches(b, layer, around.pass);
    let OwnValues { k, v, k_norm } = own(b, &raw);
    let rope = around.positions(b, layer);
    let eps = b.eps();
    b.graph.kv_rope(KvValues { k, v, k_norm, rope, k_cache, v_cache }, eps);
}

/// The stream, and raw queries, keys and values, as far as the layer has projections for them.
fn products(b: &mut Build<'_>, stream: Stream, layer: &Layer) -> (Value, Vec<Slice>) {
    match (layer.owns_cache(), b.has("attn_v.weight")) {
        (true, true) => b.products(stream, &["attn_q", "attn_k", "attn_v"]),
        (true, false) => b.products(stream, &["attn_q", "attn_k"]),
        (false, _) => b.products(stream, &["attn_q"]),
    }
}

/// Raw keys and values; values are the raw keys where the layer has no projection for them.
fn own(b: &mut Build<'_>, raw: &[Slice]) -> OwnValues {
    let k = raw[1];
    OwnValues { k, v: raw.get(2).copied().unwrap_or(k), k_norm: b.weight("attn_k_norm") }
}

/// The caches a layer reads: a ring for sliding layers.
fn caches(b: &mut Build<'_>, layer: &Layer, pass: &Pass) -> (Value, Value) {
    let slots = if layer.kind == Kind::Sliding { pass.ring } else { pass.context };
    let ty = Type::cache(pass.cache, [slots, layer.kv_heads, layer.head]);
    let k = b.graph.state(format!("k.{}", layer.donor), ty.clone());
    let v = b.graph.state(format!("v.{}", layer.donor), ty);
    (k, v)
}
