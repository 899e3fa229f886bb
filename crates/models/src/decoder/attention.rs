//! The attention branch of a layer.

use rullama_engine::{
    graph::{Type, Value},
    ops::{HeadForm, KvStoreInputs, NewKv, QueryInputs, Slice},
};

use super::{Config, Inputs, Kind, Layer, Pass, TrainPass, graph::LayerContext};
use crate::{
    build::{Build, Stream},
    folded_lora::NextMatmul,
    gemma4::diffusion::spans_name,
};

/// The stream, and the output projection of attention over the layer's KV cache or its donor's.
pub(super) fn attention(
    b: &mut Build<'_>,
    stream: Stream,
    layer: &Layer,
    context: &mut LayerContext<'_>,
) -> (Value, Value) {
    let (h, raw) = qkv(b, stream, layer);
    context.project(b);
    if b.trains() {
        let heads = training_attention(b, &raw, layer, context);
        return (h, b.linear(heads, "attn_output"));
    }
    let (k_cache, v_cache) = caches(b, layer, context.pass);
    let rope = context.rope(b, layer);
    let sequences = context.sequences(b, layer.kind);
    let queries = QueryInputs {
        q: raw[0],
        q_norm: head_norm(b, "attn_q_norm", rope),
        rope,
        k_cache,
        v_cache,
        sequences,
    };
    let new_kv = layer.owns_cache().then(|| new_kv(b, &raw, rope));
    let form = context.config.head_form();
    if b.traced() {
        heads_before_rope(b, &queries, new_kv.as_ref(), layer, (context.pass.tokens, form));
    }
    let heads = match context.block_window(layer) {
        _ if context.canvas => on_canvas(b, &queries, new_kv, (layer.kind, context.pass.tokens)),
        Some(window) => in_blocks(b, &queries, new_kv, (window, form), context.pass.tokens),
        None => b.graph.attention_qkv(queries, new_kv, context.window(layer), form),
    };
    b.tap(heads, format!("layer.{}.attn_heads", layer.index));
    // Layers with experts have more matmuls than the dense ones: nothing is folded there.
    let dense = context.config.experts.is_none();
    let next = NextMatmul {
        post_norm: context.config.family.post_norms.then_some("post_attention_norm"),
        scope: scope(layer),
        norm: dense.then_some("ffn_norm"),
        names: &["ffn_gate", "ffn_up"],
    };
    (h, b.branch((heads, h), "attn_output", &next))
}

/// The first matmuls of the layer after this one, if there is any, after the branch that ends with the norm `post_norm`.
pub(super) fn next_matmul(
    b: &mut Build<'_>,
    layer: &Layer,
    config: &Config,
    post_norm: &'static str,
) -> NextMatmul {
    let post_norm = config.family.post_norms.then_some(post_norm);
    let Some(next) = config.layers.get(layer.index + 1) else {
        return NextMatmul { post_norm, scope: String::new(), norm: None, names: &[] };
    };
    let here = b.enter(&scope(next));
    let names = projections(b, next);
    b.enter(&here);
    NextMatmul { post_norm, scope: scope(next), norm: Some("attn_norm"), names }
}

fn scope(layer: &Layer) -> String {
    format!("blk.{}", layer.index)
}

/// Attention of a training graph: a whole sequence, without KV caches.
fn training_attention(
    b: &mut Build<'_>,
    raw: &[Slice],
    layer: &Layer,
    context: &LayerContext<'_>,
) -> Value {
    let (form, rope) = (context.config.head_form(), context.rope(b, layer));
    let q_norm = head_norm(b, "attn_q_norm", rope);
    let q = b.graph.head_norm_rope(raw[0], q_norm, rope, form);
    if layer.owns_cache() {
        let NewKv { k, v, k_norm } = new_kv(b, raw, rope);
        let k = b.graph.head_norm_rope(k, k_norm, rope, form);
        let v = b.graph.head_norm(v, layer.head, form);
        b.training.as_mut().map(|training| training.keys.insert(layer.index, (k, v)));
    }
    let known = b.training.as_ref().and_then(|training| training.keys.get(&layer.donor));
    let (k, v) = *known.expect("a donor precedes the layers that share its keys");
    let starts = b.input(TrainPass::STARTS, Type::u32([context.pass.tokens]));
    b.graph.attention_train(q, (k, v), starts, context.window(layer))
}

/// Attention with a block mask, bidirectional inside a block: the keys and values of the whole block are stored first.
fn in_blocks(
    b: &mut Build<'_>,
    queries: &QueryInputs,
    new_kv: Option<NewKv>,
    (window, form): (u32, HeadForm),
    tokens: usize,
) -> Value {
    let QueryInputs { rope, k_cache, v_cache, sequences, .. } = *queries;
    if let Some(NewKv { k, v, k_norm }) = new_kv {
        b.graph.kv_rope(KvStoreInputs { k, v, k_norm, rope, k_cache, v_cache, sequences }, form);
    }
    let q = b.graph.head_norm_rope(queries.q, queries.q_norm, rope, form);
    let blocks = b.input(Inputs::BLOCKS, Type::u32([tokens]));
    b.graph.attention_block_paged(q, (k_cache, v_cache), (window, blocks), sequences)
}

/// Attention of a diffusion canvas: its keys and values are stored after the prompt's for one pass.
fn on_canvas(
    b: &mut Build<'_>,
    queries: &QueryInputs,
    new_kv: Option<NewKv>,
    (kind, tokens): (Kind, usize),
) -> Value {
    let (eps, QueryInputs { rope, k_cache, v_cache, sequences, .. }) = (b.eps(), *queries);
    if let Some(NewKv { k, v, k_norm }) = new_kv {
        b.graph.kv_rope(KvStoreInputs { k, v, k_norm, rope, k_cache, v_cache, sequences }, eps);
    }
    let q = b.graph.head_norm_rope(queries.q, queries.q_norm, rope, eps);
    let spans = b.input(spans_name(kind), Type::u32([tokens, 2]));
    b.graph.attention_packed(q, k_cache, v_cache, spans)
}

/// Heads after their norms, before RoPE: computed only as taps, since attention fuses both.
fn heads_before_rope(
    b: &mut Build<'_>,
    queries: &QueryInputs,
    new_kv: Option<&NewKv>,
    layer: &Layer,
    (tokens, form): (usize, HeadForm),
) {
    let name = |what: &str, normed: bool| {
        format!("layer.{}.{what}{}", layer.index, if normed { "_normed" } else { "" })
    };
    let identity_rope = b.identity_rope(tokens, layer.head);
    let q = b.graph.head_norm_rope(queries.q, queries.q_norm, identity_rope, form);
    b.tap(q, name("q", form.qk_norm));
    if let Some(own) = new_kv {
        let k = b.graph.head_norm_rope(own.k, own.k_norm, identity_rope, form);
        b.tap(k, name("k", form.qk_norm));
        let v = b.graph.head_norm(own.v, layer.head, form);
        b.tap(v, name("v", form.v_norm));
    }
}

/// Only the KV cache write: the last layer of a pass that fills caches computes nothing else.
pub(super) fn keys_and_values(
    b: &mut Build<'_>,
    stream: Stream,
    layer: &Layer,
    context: &LayerContext<'_>,
) {
    // Queries are computed too if they share a stacked weight with keys and values.
    let (_, raw) = qkv(b, stream, layer);
    let (k_cache, v_cache) = caches(b, layer, context.pass);
    let rope = context.rope(b, layer);
    let NewKv { k, v, k_norm } = new_kv(b, &raw, rope);
    let sequences = context.sequences(b, layer.kind);
    let form = context.config.head_form();
    b.graph.kv_rope(KvStoreInputs { k, v, k_norm, rope, k_cache, v_cache, sequences }, form);
}

/// The stream, and raw queries, keys and values, as far as the layer has them.
fn qkv(b: &mut Build<'_>, stream: Stream, layer: &Layer) -> (Value, Vec<Slice>) {
    let names = projections(b, layer);
    if !names.iter().any(|name| b.has(&format!("{name}.bias"))) {
        return b.linears(stream, names);
    }
    let (h, x) = b.rows(stream);
    let biased = |name: &&str| {
        let (y, bias) = (b.linear(x, name), format!("{name}.bias"));
        if !b.has(&bias) {
            return y.into();
        }
        let bias = b.tensor(&bias);
        b.graph.add_row(y, bias).into()
    };
    (h, names.iter().map(biased).collect())
}

/// The weight of a head norm; the RoPE table as a placeholder if heads have no norm.
fn head_norm(b: &mut Build<'_>, name: &str, rope: Value) -> Value {
    if b.has(&format!("{name}.weight")) { b.weight(name) } else { rope }
}

/// The Q, K and V projections a layer has.
fn projections(b: &Build<'_>, layer: &Layer) -> &'static [&'static str] {
    match (layer.owns_cache(), b.has("attn_v.weight")) {
        (true, true) => &["attn_q", "attn_k", "attn_v"],
        (true, false) => &["attn_q", "attn_k"],
        (false, _) => &["attn_q"],
    }
}

/// Raw keys and values; layers without a V projection use the raw keys as values.
fn new_kv(b: &mut Build<'_>, raw: &[Slice], rope: Value) -> NewKv {
    let k = raw[1];
    let k_norm = head_norm(b, "attn_k_norm", rope);
    NewKv { k, v: raw.get(2).copied().unwrap_or(k), k_norm }
}

/// The KV caches a layer reads: a ring buffer for sliding layers, the whole context for global ones, or the paged pool.
fn caches(b: &mut Build<'_>, layer: &Layer, pass: &Pass) -> (Value, Value) {
    let ty = cache_type(layer, pass);
    let [k, v] = cache_names(layer.donor);
    (b.graph.state(k, ty.clone()), b.graph.state(v, ty))
}

fn cache_names(layer: usize) -> [String; 2] {
    [format!("k.{layer}"), format!("v.{layer}")]
}

fn cache_type(layer: &Layer, pass: &Pass) -> Type {
    let slots = match (&pass.pool, layer.kind) {
        (Some(pool), kind) => pool.of(kind).pages * pool.page,
        (None, Kind::Sliding) => pass.ring,
        (None, Kind::Global) => pass.context,
    };
    Type::cache(pass.cache, [slots, layer.kv_heads, layer.head])
}

/// The KV caches of a pass: the name of each state, the kind of its layer and its type `[slots, heads, head]`.
pub fn kv_caches(config: &Config, pass: &Pass) -> Vec<(String, Kind, Type)> {
    let owners = config.layers.iter().filter(|layer| layer.owns_cache());
    let both = owners.flat_map(|layer| {
        let ty = cache_type(layer, pass);
        cache_names(layer.index).map(|name| (name, layer.kind, ty.clone()))
    });
    both.collect()
}
