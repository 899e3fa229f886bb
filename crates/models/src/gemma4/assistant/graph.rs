//! The draft graph: several draft tokens in one pass.

use rullama_engine::{
    graph::{Element, Graph, Type, Value},
    ops::{QueryInputs, Routes},
};

use super::{DraftConfig, DraftLayer, config::donor};
use crate::{
    build::{Build, ResidualAdd, Stream},
    decoder::{Config, Inputs, Kind},
    tensors::Catalog,
};

/// Prefix of the drafter's tensors in graphs that also read the target model's tensors.
pub const PREFIX: &str = "draft.";

/// Configuration of one draft graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftPass {
    /// Number of drafted tokens.
    pub drafts: usize,
    /// Rows of [`Inputs::HIDDEN`], and length of [`Inputs::DRAFTS`].
    pub rows: usize,
    /// KV cache capacity of global layers, in tokens.
    pub context: usize,
    /// Ring buffer capacity of sliding layers, in tokens.
    pub ring: usize,
    /// KV cache format.
    pub cache: Element,
}

/// Names of inputs that the host writes, in addition to the RoPE tables and the token of [`Inputs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftInputs;

impl DraftInputs {
    /// Row of [`Inputs::HIDDEN`] of the token before the last `u32[1]`.
    pub const ROW: &'static str = "row";
    /// The tokens of all clusters `u32[v]`.
    pub const MEMBERS: &'static str = "members";
    /// The embedding rows of the clusters' tokens, in cluster order.
    pub const CLUSTERS: &'static str = "draft.clusters.weight";
}

/// A graph that writes drafts to [`Inputs::DRAFTS`], after the last token.
#[derive(Debug)]
pub struct Drafts {
    /// The graph; it runs at the position of the last token that is in the caches.
    pub graph: Graph,
}

/// Builds the draft graph: the drafter's layers once per draft, all at the same position. The catalogue has the drafter's tensors under
/// [`PREFIX`], and the target model's `token_embd`.
///
/// # Panics
/// If the catalogue does not match the configuration, or the drafter does not match the model.
pub fn draft(config: &DraftConfig, model: &Config, catalog: &Catalog, pass: &DraftPass) -> Drafts {
    let mut b = Build::new(catalog, config.eps, false);
    let mut token = b.graph.state(Inputs::TOKEN, Type::u32([1]));
    let hidden = b.graph.state(Inputs::HIDDEN, Type::f32([pass.rows, config.out]));
    let row = b.graph.input(DraftInputs::ROW, Type::u32([1]));
    let drafts = b.graph.state(Inputs::DRAFTS, Type::u32([pass.rows]));
    let mut state = b.graph.select_row_at(hidden, row);
    for index in 0..pass.drafts {
        let y = draft_step(&mut b, token, state, &DraftContext { config, model, pass });
        b.enter("draft");
        token = head(&mut b, y, config, index);
        b.graph.store_at(drafts, 1 + index, token);
        state = b.linear(y, "nextn.post_projection");
        b.tap(state, format!("step{index}.hidden"));
        b.enter("");
    }
    Drafts { graph: b.graph }
}

/// One draft step through all layers; returns the input of the head.
fn draft_step(b: &mut Build<'_>, token: Value, state: Value, draft: &DraftContext<'_>) -> Value {
    let config = draft.config;
    b.enter("");
    let table = b.weight("token_embd");
    let scale = (config.out as f64).sqrt() as f32;
    let embedding = b.graph.embed(token, table, scale);
    let pair = b.graph.join_columns(&[embedding, state]);
    b.enter("draft");
    let h = b.linear(pair, "nextn.pre_projection");
    b.enter("draft.blk.0");
    let mut stream = b.after_norm(h, "attn_norm");
    for (index, layer) in config.layers.iter().enumerate() {
        b.enter(&format!("draft.blk.{index}"));
        let (h, a) = attention(b, stream, layer, draft);
        let next = Some(b.weight("ffn_norm"));
        let stream_in = b.residual_add(
            &ResidualAdd { h, a, name: Some("post_attention_norm"), scale: None },
            next,
        );
        let (h, both) = b.gated(stream_in, "ffn_gate", "ffn_up");
        let m = b.linear(both, "ffn_down");
        let scale = b.has("layer_output_scale.weight").then(|| b.weight("layer_output_scale"));
        let next = match index + 1 < config.layers.len() {
            true => {
                b.enter(&format!("draft.blk.{}", index + 1));
                b.weight("attn_norm")
            }
            false => {
                b.enter("draft");
                b.weight("output_norm")
            }
        };
        b.enter(&format!("draft.blk.{index}"));
        stream = b
            .residual_add(&ResidualAdd { h, a: m, name: Some("post_ffw_norm"), scale }, Some(next));
    }
    b.rows(stream).1
}

/// State shared by all layers of a draft graph.
struct DraftContext<'a> {
    config: &'a DraftConfig,
    /// The target model.
    model: &'a Config,
    pass: &'a DraftPass,
}

/// The stream, and attention over the KV cache of the target model's last layer of this kind that has its own.
fn attention(
    b: &mut Build<'_>,
    stream: Stream,
    layer: &DraftLayer,
    draft: &DraftContext<'_>,
) -> (Value, Value) {
    let DraftContext { config, model, pass } = *draft;
    let (h, raw) = b.linears(stream, &["attn_q"]);
    let donor = donor(model, layer.kind).expect("the drafter was checked against its model");
    let (name, slots, window) = match layer.kind {
        // As in the reference: the drafted token attends to one key more than a cached token.
        Kind::Sliding => (Inputs::ROPE_SLIDING, pass.ring, u32::try_from(config.window + 1).ok()),
        Kind::Global => (Inputs::ROPE_GLOBAL, pass.context, None),
    };
    let cache = Type::cache(pass.cache, [slots, layer.kv_heads, layer.head]);
    let queries = QueryInputs {
        q: raw[0],
        q_norm: b.weight("attn_q_norm"),
        rope: b.input(name, Type::f32([1, layer.head / 2, 2])),
        k_cache: b.graph.state(format!("k.{}", donor.index), cache.clone()),
        v_cache: b.graph.state(format!("v.{}", donor.index), cache),
        sequences: None,
    };
    let eps = b.eps();
    let heads = b.graph.attention_qkv(queries, None, window, eps);
    (h, b.linear(heads, "attn_output"))
}

/// The most likely token of the vocabulary, or of the nearest clusters.
fn head(b: &mut Build<'_>, y: Value, config: &DraftConfig, index: usize) -> Value {
    let Some(clusters) = config.clusters else {
        let logits = b.linear(y, "token_embd");
        b.tap(logits, format!("step{index}.logits"));
        return b.graph.argmax(logits);
    };
    let scores = b.linear(y, "masked_embd_centroids");
    let (ids, _) = b.graph.top_k(scores, clusters.used);
    // Reshapes through a state: no operation changes the shape of a value.
    let chosen = b.graph.state("draft.chosen", Type::u32([1, clusters.used]));
    b.graph.store_at(chosen, 0, ids);
    b.enter("");
    let weight = b.tensor(DraftInputs::CLUSTERS);
    let scores = b.graph.linear_experts(y, &Routes { ids: chosen, groups: None }, weight);
    let all = clusters.used * clusters.each;
    let row = b.graph.state("draft.scores", Type::f32([1, all]));
    b.graph.store_at(row, 0, scores);
    let best = b.graph.argmax(row);
    let members = b.input(DraftInputs::MEMBERS, Type::u32([config.vocabulary]));
    b.enter("draft");
    b.graph.member(best, chosen, members, clusters.each)
}
