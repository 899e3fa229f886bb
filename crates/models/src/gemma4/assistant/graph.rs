//! Several drafts as one graph.

use rullama_engine::{
    graph::{Element, Graph, Type, Value},
    ops::{QueryInputs, Routes},
};

use super::{
    super::{Config, Inputs, Kind},
    DraftConfig, DraftLayer,
    config::donor,
};
use crate::{
    build::{Build, ResidualAdd, Stream},
    tensors::Catalog,
};

/// Stands before the names of a drafter's tensors in graphs, where its model's are too.
pub const PREFIX: &str = "draft.";

/// What one graph of drafts is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftPass {
    /// How many tokens are drafted.
    pub drafts: usize,
    /// Rows of the model's hidden states, and tokens of the state that drafts are written to.
    pub rows: usize,
    /// Tokens the caches of global layers hold.
    pub context: usize,
    /// Tokens the rings of sliding layers hold.
    pub ring: usize,
    /// How caches keep numbers.
    pub cache: Element,
}

/// Names of what the host writes, beside the model's [`Inputs`]: positions for one token, and the last token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftInputs;

impl DraftInputs {
    /// Which row of [`Inputs::HIDDEN`] belongs to the token before the last `u32[1]`.
    pub const ROW: &'static str = "row";
    /// The tokens of all clusters `u32[v]`.
    pub const MEMBERS: &'static str = "members";
    /// The weight of the clusters' tokens, in their order.
    pub const CLUSTERS: &'static str = "draft.clusters.weight";
}

/// A graph of drafts, which are written to [`Inputs::DRAFTS`] after the last token.
#[derive(Debug)]
pub struct Drafts {
    /// The graph; it runs at the position of the last token that is in the caches.
    pub graph: Graph,
}

/// Writes the graph of some drafts: the drafter's layers once for each, all at the same position. The catalogue has the drafter's
/// tensors under [`PREFIX`], and the model's `token_embd`.
///
/// # Panics
/// If the catalogue is not of this configuration, or the drafter not of this model.
pub fn draft(config: &DraftConfig, model: &Config, catalog: &Catalog, pass: &DraftPass) -> Drafts {
    let mut b = Build::new(catalog, config.eps, false);
    let mut token = b.graph.state(Inputs::TOKEN, Type::u32([1]));
    let hidden = b.graph.state(Inputs::HIDDEN, Type::f32([pass.rows, config.out]));
    let row = b.graph.input(DraftInputs::ROW, Type::u32([1]));
    let drafts = b.graph.state(Inputs::DRAFTS, Type::u32([pass.rows]));
    let mut state = b.graph.select_row_at(hidden, row);
    for index in 0..pass.drafts {
        let y = one(&mut b, token, state, &DraftContext { config, model, pass });
        b.enter("draft");
        token = head(&mut b, y, config, index);
        b.graph.store_at(drafts, 1 + index, token);
        state = b.linear(y, "nextn.post_projection");
        b.tap(state, format!("step{index}.hidden"));
        b.enter("");
    }
    Drafts { graph: b.graph }
}

/// All layers once: what enters the head.
fn one(b: &mut Build<'_>, token: Value, state: Value, draft: &DraftContext<'_>) -> Value {
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

/// What all layers of a drafter share.
struct DraftContext<'a> {
    config: &'a DraftConfig,
    /// The model it drafts for.
    model: &'a Config,
    pass: &'a DraftPass,
}

/// The stream, and queries over the caches of the model's last layer of this kind that has its own.
fn attention(
    b: &mut Build<'_>,
    stream: Stream,
    layer: &DraftLayer,
    draft: &DraftContext<'_>,
) -> (Value, Value) {
    let DraftContext { config, model, pass } = *draft;
    let (h, raw) = b.products(stream, &["attn_q"]);
    let donor = donor(model, layer.kind).expect("the drafter was checked against its model");
    let (name, slots, window) = match layer.kind {
        // As the reference does: the drafted token sees one key more than one that is in the caches.
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

/// The most likely token: of all, or of those in the clusters whose centroids are nearest.
fn head(b: &mut Build<'_>, y: Value, config: &DraftConfig, index: usize) -> Value {
    let Some(clusters) = config.clusters else {
        let logits = b.linear(y, "token_embd");
        b.tap(logits, format!("step{index}.logits"));
        return b.graph.argmax(logits);
    };
    let scores = b.linear(y, "masked_embd_centroids");
    let (ids, _) = b.graph.top_k(scores, clusters.used);
    // States of other shapes: nothing else gives a value another one.
    let chosen = b.graph.state("draft.chosen", Type::u32([1, clusters.used]));
    b.graph.store_at(chosen, 0, ids);
    b.enter("");
    let weight = b.tensor(DraftInputs::CLUSTERS);
    let scores = b.graph.linear_experts(y, &Routes { ids: chosen, groups: None }, weight);
    let all = clusters.used * clusters.each;
    let row = b.graph.state("draft.scores", Type::f32([1, all]));
    b.graph.store_at(row, 0, scores);
    let place = b.graph.argmax(row);
    let members = b.input(DraftInputs::MEMBERS, Type::u32([config.vocabulary]));
    b.enter("draft");
    b.graph.member(place, chosen, members, clusters.each)
}
