//! The embedding graph: texts of different lengths as packed sequences.

use rullama_engine::{
    graph::{Graph, Type, Value},
    ops::{Branch, Slice},
};

use super::{EmbeddingConfig, EmbeddingLayer};
use crate::{build::Build, decoder::Kind, tensors::Catalog};

/// Names of inputs that the host writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingInputs;

impl EmbeddingInputs {
    /// Token ids `u32[t]`, one text after another.
    pub const IDS: &'static str = "ids";
    /// RoPE table of sliding layers, by position in the text `[t, e/2, 2]`.
    pub const ROPE_SLIDING: &'static str = "rope.sliding";
    /// RoPE table of global layers `[t, e/2, 2]`.
    pub const ROPE_GLOBAL: &'static str = "rope.global";
    /// Token range that each token attends to on sliding layers `u32[t, 2]`.
    pub const SPANS_SLIDING: &'static str = "spans.sliding";
    /// Token range that each token attends to on global layers, its text `u32[t, 2]`.
    pub const SPANS_GLOBAL: &'static str = "spans.global";
    /// Pooling weight of each token for each text `[n, t]`.
    pub const POOL: &'static str = "pool";
    /// RoPE table without rotation, for norms of per-layer inputs `[t, p/2, 2]`.
    pub const IDENTITY_ROPE: &'static str = "rope.identity";
}

/// A graph that embeds texts.
#[derive(Debug)]
pub struct Embedding {
    /// The graph.
    pub graph: Graph,
    /// A vector for each text `[n, out]`, not normalised.
    pub result: Value,
}

/// Builds the graph for a number of tokens and texts.
///
/// # Panics
/// If the catalogue does not match the configuration.
pub fn embedding(
    config: &EmbeddingConfig,
    catalog: &Catalog,
    (tokens, texts): (usize, usize),
) -> Embedding {
    let mut b = Build::new(catalog, config.eps, false);
    let ids = b.input(EmbeddingInputs::IDS, Type::u32([tokens]));
    let table = b.weight("token_embd");
    let mut h = b.graph.embed(ids, table, (config.width as f64).sqrt() as f32);
    let extra = config.per_layer.map(|_| {
        let all = b.linear(h, "per_layer_model_proj");
        b.graph.scale(all, (config.width as f64).sqrt().recip() as f32)
    });
    for (index, layer) in config.layers.iter().enumerate() {
        b.enter(&format!("blk.{index}"));
        h = attention(&mut b, h, layer, (config, tokens));
        h = feed_forward(&mut b, h, PerLayerInput { config, extra, index, tokens });
    }
    b.enter("");
    let norm = b.tensor(config.last_norm());
    let eps = b.eps();
    let y = b.graph.rms_norm(h, Some(norm), eps);
    b.tap(y, "final_norm");
    let pool = b.input(EmbeddingInputs::POOL, Type::f32([texts, tokens]));
    // The projection of the second generation commutes with the mean.
    let mut result = b.graph.matmul_nn(pool, y);
    if config.second {
        result = b.linear(result, "embedding_projection");
    }
    if config.dense.is_some() {
        for name in config.dense_names() {
            let weight = b.tensor(name);
            result = b.graph.linear(result, weight);
        }
    }
    b.graph.keep(result);
    Embedding { graph: b.graph, result }
}

fn attention(
    b: &mut Build<'_>,
    h: Value,
    layer: &EmbeddingLayer,
    (config, tokens): (&EmbeddingConfig, usize),
) -> Value {
    let (eps, head) = (b.eps(), layer.head);
    let x = b.norm(h, "attn_norm");
    let [q, k, v] = ["attn_q", "attn_k", "attn_v"].map(|name| b.linear(x, name));
    let (rope, spans) = match layer.kind {
        Kind::Sliding => (EmbeddingInputs::ROPE_SLIDING, EmbeddingInputs::SPANS_SLIDING),
        Kind::Global => (EmbeddingInputs::ROPE_GLOBAL, EmbeddingInputs::SPANS_GLOBAL),
    };
    let rope = b.input(rope, Type::f32([tokens, head / 2, 2]));
    let spans = b.input(spans, Type::u32([tokens, 2]));
    let (q_norm, k_norm) = (b.weight("attn_q_norm"), b.weight("attn_k_norm"));
    let q = b.graph.head_norm_rope(q, q_norm, rope, eps);
    let k = b.graph.head_norm_rope(k, k_norm, rope, eps);
    let (q, v) = match config.second {
        true => (q, b.graph.head_norm(v, head, eps)),
        // The first generation scales scores and does not norm values.
        false => (b.graph.scale(q, (head as f64).sqrt().recip() as f32), v),
    };
    let heads = b.graph.attention_packed(q, k, v, spans);
    let a = b.linear(heads, "attn_output");
    residual_add(b, h, a, "post_attention_norm", false)
}

/// Per-layer input of a feed-forward branch.
struct PerLayerInput<'a> {
    config: &'a EmbeddingConfig,
    /// Per-layer inputs of all layers, in models that have them.
    extra: Option<Value>,
    index: usize,
    tokens: usize,
}

fn feed_forward(
    b: &mut Build<'_>,
    h: Value,
    PerLayerInput { config, extra, index, tokens }: PerLayerInput<'_>,
) -> Value {
    let stream = b.after_norm(h, "ffn_norm");
    let (h, both) = b.gated(stream, "ffn_gate", "ffn_up");
    let m = b.linear(both, "ffn_down");
    let (Some(extra), Some(each)) = (extra, config.per_layer) else {
        return residual_add(b, h, m, "post_ffw_norm", config.second);
    };
    let h = residual_add(b, h, m, "post_ffw_norm", false);
    let scope = format!("blk.{index}");
    b.enter("");
    let norm = b.weight("per_layer_proj_norm");
    b.enter(&scope);
    let identity_rope = b.input(EmbeddingInputs::IDENTITY_ROPE, Type::f32([tokens, each / 2, 2]));
    let eps = b.eps();
    let own =
        b.graph.head_norm_rope(Slice::new(extra, index * each, each), norm, identity_rope, eps);
    let gate = b.linear(h, "inp_gate");
    let gated = b.graph.gelu_mul_slice(gate, own, 0);
    let a = b.linear(gated, "proj");
    residual_add(b, h, a, "post_norm", true)
}

/// The stream after a branch and its norm; scaled if the branch `ends` a layer.
fn residual_add(
    b: &mut Build<'_>,
    residual: Value,
    branch: Value,
    norm: &str,
    ends: bool,
) -> Value {
    let scaled = ends && b.has("layer_output_scale.weight");
    let scale = scaled.then(|| b.weight("layer_output_scale"));
    let (weight, eps) = (b.weight(norm), b.eps());
    b.graph.add_norm(
        &Branch { residual, branch, weight, post_norm: true, scale, lora_b: None, folded: 0 },
        eps,
    )
}
