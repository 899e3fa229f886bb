//! The graph of one pass.

use std::ops::Range;

use rullama_engine::{
    graph::{Element, Graph, Type, Value},
    ops::{Sequences, TopK},
};

use super::{
    Config, Kind, Layer, PoolShape, Segment, attention, feed_forward, per_layer,
    pool::{gathered_ids, scatter, sequences},
};
use crate::{
    adapted::{Adapted, FactorGroup, HEAD},
    build::{Build, ResidualAdd, Stream},
    folded_lora::FoldedLora,
    tensors::Catalog,
};

/// Configuration of one decoder graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Maximum tokens of a pass.
    pub tokens: usize,
    /// Where the tokens come from.
    pub input: PassInput,
    /// Whether the per-layer input table is a weight of the graph; otherwise its rows are an input.
    pub table: bool,
    /// What the pass computes.
    pub output: PassOutput,
    /// KV cache capacity of global layers, in tokens.
    pub context: usize,
    /// Ring buffer capacity of sliding layers, in tokens: window + longest pass − 1, or the whole context.
    pub ring: usize,
    /// KV cache format.
    pub cache: Element,
    /// Number of suppressed tokens; their ids are an input.
    pub suppressed: usize,
    /// Whether every tapped value is computed; disables fusions that would skip one.
    pub traced: bool,
    /// Number of last layers whose experts run on the host: the graph is split there.
    pub host_experts: usize,
    /// Whether layers attend bidirectionally inside blocks (the tokens of an image), global ones only in some families
    /// ([`Family::global_image_blocks`](crate::family::Family::global_image_blocks)); block ends are then an input.
    pub blocks: bool,
    /// Whether the LM head's input rows are kept for a drafter, in the state [`Inputs::HIDDEN`].
    pub hidden: bool,
    /// Upper bound of positions, if known: global layers then read no more of their KV caches.
    pub short_context: Option<usize>,
    /// Sizes of the KV pools, if caches are paged. Passes that fill caches then process tokens of one sequence, all others one token of
    /// each of several sequences.
    pub pool: Option<PoolShape>,
}

impl Pass {
    /// Rows for which a batched GEMV reads weights once. More rows are groups of 8, or GEMM tiles ([`PoolShape::gemm`]).
    pub const GEMV_ROWS: usize = 8;

    /// Whether each token is computed to the last bit as in a pass of its own.
    pub fn batch_invariant(&self) -> bool {
        let gemm = self.pool.is_some_and(|pool| pool.gemm) && self.tokens > Self::GEMV_ROWS;
        self.output.batch_invariant() && !gemm
    }
}

/// Where the tokens of a pass come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassInput {
    /// Token ids, written by the host.
    Ids,
    /// The token sampled by the last pass, which stays on the device.
    Token,
    /// The last token and the drafts after it, in the state [`Inputs::DRAFTS`].
    Drafts,
    /// Token ids for the per-layer input table, and embedding rows, both written by the host: some rows are soft tokens of images and
    /// audio.
    Rows,
}

/// What a pass computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PassOutput {
    /// Only keys and values: prefill of a prompt chunk.
    Caches,
    /// Logits of all tokens.
    Logits,
    /// The most likely next token, after one token.
    Greedy,
    /// A sampled next token, after one token.
    Drawn,
    /// The most likely next token after each token, batch-invariant.
    GreedyEach,
    /// A sampled next token after each token, batch-invariant.
    DrawnEach,
    /// Logits of all tokens, batch-invariant.
    LogitsEach,
}

impl PassOutput {
    /// Whether each token's result is bit-identical to a single-token pass.
    pub fn batch_invariant(self) -> bool {
        matches!(self, Self::GreedyEach | Self::DrawnEach | Self::LogitsEach)
    }
}

/// Names of inputs and states that the host writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs;

impl Inputs {
    /// Token ids `u32[t]`.
    pub const IDS: &'static str = "ids";
    /// Embedding rows `[t, d]`.
    pub const ROWS: &'static str = "rows";
    /// For each token the exclusive end position of its block, or 0 `u32[t]`.
    pub const BLOCKS: &'static str = "blocks";
    /// The last sampled token, a state `u32[1]`.
    pub const TOKEN: &'static str = "token";
    /// The last sampled token and the drafts after it, a state `u32[t]`.
    pub const DRAFTS: &'static str = "drafts";
    /// The latest token of each sequence of a KV pool, a state `u32[slots]`.
    pub const LATEST: &'static str = "latest";
    /// Input rows of the LM head, a state `[t, d]`.
    pub const HIDDEN: &'static str = "hidden";
    /// Rows of the per-layer input table `[t, layers · p]`.
    pub const PER_LAYER: &'static str = "per_layer";
    /// RoPE table of sliding layers, cosines and sines `[t, e/2, 2]`.
    pub const ROPE_SLIDING: &'static str = "rope.sliding";
    /// RoPE table of global layers `[t, e/2, 2]`.
    pub const ROPE_GLOBAL: &'static str = "rope.global";
    /// Suppressed tokens `u32[n]`.
    pub const SUPPRESSED: &'static str = "suppressed";
    /// RoPE table without rotation, for traced heads; the head size follows the name.
    pub const IDENTITY_ROPE: &'static str = "rope.identity.";
    /// The sequences of a pass over KV pools, with their block tables of sliding layers `u32[t, 4 + entries]`, or `[1, …]` of one sequence.
    pub const SEQUENCES_SLIDING: &'static str = "sequences.sliding";
    /// The sequences of a pass with their block tables of global layers.
    pub const SEQUENCES_GLOBAL: &'static str = "sequences.global";
    /// Sampling parameters `[4]`, or `[t, 4]` for tokens of different sequences.
    pub const DRAW: &'static str = "draw";
    /// Output of the host's experts for the layer that ends the previous segment `[t, d]`.
    pub const EXPERTS: &'static str = "experts";
    /// Input of experts on the host `[t, d]`.
    pub const X: &'static str = "x";
    /// Expert ids of each token, for the host `u32[t, k]`.
    pub const EXPERT_IDS: &'static str = "expert_ids";
    /// Expert weights of each token, for the host `[t, k]`.
    pub const EXPERT_WEIGHTS: &'static str = "expert_weights";
}

/// A decoder graph, split into segments if experts run on the host.
#[derive(Debug)]
pub struct Decoder {
    /// One segment, and one more for each layer whose experts run on the host.
    pub segments: Vec<Segment>,
    /// Result of the last segment: logits `[t, v]` or sampled tokens `u32[1]`; `None` if only caches are filled.
    pub result: Option<Value>,
    /// LoRA factors that the graph reads as weights.
    pub factors: Vec<FactorGroup>,
    /// Folded LoRA down-projections that the graph reads as weights.
    pub folded: Vec<FoldedLora>,
}

/// Builds the graph of one pass.
///
/// # Panics
/// If a single-token output is requested for several tokens, or the catalogue does not match the configuration.
pub fn decoder(config: &Config, catalog: &Catalog, pass: &Pass) -> Decoder {
    adapted_decoder(config, catalog, pass, None)
}

/// Builds the graph of one pass with the LoRA factors of an adapter.
///
/// # Panics
/// As [`decoder`] does.
pub fn adapted_decoder(
    config: &Config,
    catalog: &Catalog,
    pass: &Pass,
    adapted: Option<&Adapted>,
) -> Decoder {
    let mut b = Build::new(catalog, config.eps, pass.traced).with_adapter(adapted);
    if pass.batch_invariant() {
        b.graph = Graph::new_batch_invariant();
    }
    if adapted.is_some_and(|adapted| adapted.slots.is_some()) {
        b.slot_sequences = sequences(&mut b, pass, Kind::Global).map(|rows| rows.value);
    }
    let (mut context, mut stream) = embed_tokens(&mut b, config, pass);
    for layer in &config.layers {
        b.enter(&format!("blk.{}", layer.index));
        let last_writer = layer.index + 1 == config.owners();
        if pass.output == PassOutput::Caches && last_writer {
            attention::keys_and_values(&mut b, stream, layer, &context);
            return context.end(b, None);
        }
        stream = one_layer(&mut b, stream, layer, &mut context);
    }
    let result = head(&mut b, stream, config, pass);
    context.end(b, Some(result))
}

/// The residual stream after the last layer, before the final norm, and the node range of each layer.
pub(super) fn layers(
    b: &mut Build<'_>,
    config: &Config,
    pass: &Pass,
) -> (Value, Vec<Range<usize>>) {
    let (mut context, mut stream) = embed_tokens(b, config, pass);
    let mut ranges = Vec::new();
    for layer in &config.layers {
        let first = b.graph.nodes().len();
        b.enter(&format!("blk.{}", layer.index));
        stream = one_layer(b, stream, layer, &mut context);
        ranges.push(first..b.graph.nodes().len());
    }
    (stream.or(None), ranges)
}

/// Embeds the tokens: the residual stream before the first layer.
fn embed_tokens<'a>(
    b: &mut Build<'_>,
    config: &'a Config,
    pass: &'a Pass,
) -> (LayerContext<'a>, Stream) {
    b.activation = config.family.activation;
    let ids = match pass.input {
        PassInput::Drafts => b.graph.state(Inputs::DRAFTS, Type::u32([pass.tokens])),
        PassInput::Ids | PassInput::Rows => {
            let ids = b.graph.input(Inputs::IDS, Type::u32([pass.tokens]));
            gathered_ids(b, pass, ids)
        }
        PassInput::Token => b.graph.state(Inputs::TOKEN, Type::u32([1])),
    };
    let h = match pass.input {
        PassInput::Rows => b.graph.input(Inputs::ROWS, Type::f32([pass.tokens, config.width])),
        PassInput::Ids | PassInput::Token | PassInput::Drafts => {
            b.lookup(ids, "token_embd", config.embedding_scale())
        }
    };
    b.tap(h, "embed_scaled");
    let pending = per_layer::inputs(b, config, pass, ids, h);
    let mut context =
        LayerContext { config, pass, pending, extra: None, segments: Vec::new(), canvas: false };
    if b.trains() {
        // Layers are recomputed one by one in training: values they share must be computed outside.
        context.compute_extra(b);
    }
    b.enter("blk.0");
    (context, b.after_norm(h, "attn_norm"))
}

/// State shared by all layers of a graph.
pub(crate) struct LayerContext<'a> {
    pub(super) config: &'a Config,
    pub(super) pass: &'a Pass,
    /// Per-layer inputs that are not computed yet.
    pub(super) pending: Option<per_layer::Pending>,
    /// Per-layer inputs.
    pub(super) extra: Option<Value>,
    /// Finished segments.
    pub(super) segments: Vec<Segment>,
    /// Whether tokens are positions of a diffusion canvas, which attend to each other and to the prompt.
    pub(super) canvas: bool,
}

impl<'a> LayerContext<'a> {
    /// Context for the layers of a diffusion canvas.
    pub(crate) fn of_canvas(config: &'a Config, pass: &'a Pass) -> Self {
        Self { config, pass, pending: None, extra: None, segments: Vec::new(), canvas: true }
    }

    /// Adds the projection of per-layer inputs here, so that it overlaps with the matmuls before it.
    pub(super) fn project(&mut self, b: &mut Build<'_>) {
        if let Some(pending) = &mut self.pending {
            pending.project(b);
        }
    }

    /// Computes per-layer inputs, once.
    fn compute_extra(&mut self, b: &mut Build<'_>) {
        if let Some(pending) = self.pending.take() {
            self.extra = Some(pending.finish(b, self.config));
        }
    }

    /// The RoPE table of a layer.
    pub(super) fn rope(&self, b: &mut Build<'_>, layer: &Layer) -> Value {
        let name = match layer.kind {
            Kind::Sliding => Inputs::ROPE_SLIDING,
            Kind::Global => Inputs::ROPE_GLOBAL,
        };
        b.input(name, Type::f32([self.pass.tokens, layer.head / 2, 2]))
    }

    /// The sequences of a pass over KV pools, with block tables for layers of this kind.
    pub(super) fn sequences(&self, b: &mut Build<'_>, kind: Kind) -> Option<Sequences> {
        sequences(b, self.pass, kind)
    }

    /// Attention window of a layer in positions, including the query's own; `None` for all.
    pub(super) fn window(&self, layer: &Layer) -> Option<u32> {
        match layer.kind {
            Kind::Sliding => u32::try_from(self.config.window).ok(),
            Kind::Global => self.pass.short_context.and_then(|end| u32::try_from(end).ok()),
        }
    }

    /// The window of a layer that attends bidirectionally inside blocks; `None` if it does not.
    pub(super) fn block_window(&self, layer: &Layer) -> Option<u32> {
        let window = match layer.kind {
            Kind::Sliding => self.config.window,
            Kind::Global if self.config.family.global_image_blocks => self.pass.context,
            Kind::Global => return None,
        };
        u32::try_from(window).ok().filter(|_| self.pass.blocks)
    }

    /// Whether the host computes a layer's experts.
    pub(super) fn experts_on_host(&self, layer: &Layer) -> bool {
        layer.index >= self.config.layers.len().saturating_sub(self.pass.host_experts)
    }

    fn end(mut self, b: Build<'_>, result: Option<Value>) -> Decoder {
        self.segments.push(Segment { graph: b.graph, experts: None });
        Decoder { segments: self.segments, result, factors: b.factors, folded: b.folded }
    }
}

/// One layer: takes the residual stream before it, returns the stream after it.
pub(crate) fn one_layer(
    b: &mut Build<'_>,
    stream: Stream,
    layer: &Layer,
    context: &mut LayerContext<'_>,
) -> Stream {
    let name = |what: &str| format!("layer.{}.{what}", layer.index);
    let stream = tap_input(b, stream, &name("attn_in"), layer.index.checked_sub(1));
    let (h, a) = attention::attention(b, stream, layer, context);
    context.compute_extra(b);
    b.tap(a, name("attn_out"));
    let next = Some(b.weight("ffn_norm"));
    let name = context.config.family.post_norms.then_some("post_attention_norm");
    let stream = b.residual_add(&ResidualAdd { h, a, name, scale: None }, next);

    let (h, m) = match context.config.experts {
        None => feed_forward::dense(b, stream, layer, context.config),
        Some(experts) => feed_forward::dense_and_experts(b, stream, layer, experts, context),
    };
    let (h, a, norm) = match context.extra {
        None => (h, m, "post_ffw_norm"),
        Some(extra) => {
            let name = Some("post_ffw_norm");
            let stream = b.residual_add(&ResidualAdd { h, a: m, name, scale: None }, None);
            let (h, a) = per_layer::branch(b, stream, extra, layer, context.config);
            (h, a, "post_norm")
        }
    };
    let scale = context.config.layer_scale;
    let scale = b.has(&format!("{scale}.weight")).then(|| b.weight(scale));
    let next = following_norm(b, layer, context.config);
    let name = context.config.family.post_norms.then_some(norm);
    b.residual_add(&ResidualAdd { h, a, name, scale }, Some(next))
}

/// In traced graphs, taps the residual stream (the previous layer's output) and its norm.
fn tap_input(b: &mut Build<'_>, stream: Stream, name: &str, before: Option<usize>) -> Stream {
    if !b.traced() {
        return stream;
    }
    let (h, x) = b.rows(stream);
    b.tap(x, name);
    if let Some(before) = before {
        b.tap(h, format!("layer.{before}.out"));
    }
    Stream::new(h, x)
}

/// The norm after a layer: the next layer's, or the final norm.
fn following_norm(b: &mut Build<'_>, layer: &Layer, config: &Config) -> Value {
    let here = format!("blk.{}", layer.index);
    let next = layer.index + 1;
    if next < config.layers.len() {
        b.enter(&format!("blk.{next}"));
        let norm = b.weight("attn_norm");
        b.enter(&here);
        norm
    } else {
        b.enter("");
        let norm = b.weight("output_norm");
        b.enter(&here);
        norm
    }
}

/// Logits, and the sampled token if the pass returns one.
fn head(b: &mut Build<'_>, stream: Stream, config: &Config, pass: &Pass) -> Value {
    b.enter("");
    // The LM head has too many workgroups for each to compute the norm.
    let (h, x) = b.rows(stream);
    b.tap(h, format!("layer.{}.out", config.layers.len() - 1));
    b.tap(x, "final_norm");
    if pass.hidden {
        let hidden = b.graph.state(Inputs::HIDDEN, Type::f32([pass.tokens, config.width]));
        b.graph.store(hidden, x);
    }
    let head = if b.has("output.weight") { "output" } else { "token_embd" };
    let mut logits = b.capped(x, head, HEAD, config.softcap);
    if pass.suppressed > 0 {
        let ids = b.graph.input(Inputs::SUPPRESSED, Type::u32([pass.suppressed]));
        logits = b.graph.suppress(logits, ids);
    }
    // Every graph has this state, so that a saved session does not depend on which graph ran last.
    let token = b.graph.state(Inputs::TOKEN, Type::u32([1]));
    match pass.output {
        PassOutput::Caches | PassOutput::Logits | PassOutput::LogitsEach => {
            b.graph.keep(logits);
            logits
        }
        PassOutput::Greedy => {
            b.graph.argmax_into(token, logits);
            token
        }
        PassOutput::Drawn => {
            let (ids, largest, draw) = sampling_inputs(b, logits, config, 1);
            b.graph.sample_into(token, ids, largest, draw);
            token
        }
        PassOutput::GreedyEach => {
            let tokens = b.graph.argmax(logits);
            scatter(b, pass, tokens);
            b.graph.keep(tokens);
            tokens
        }
        PassOutput::DrawnEach => {
            let rows = sequences(b, pass, Kind::Global);
            let draws = if rows.is_some() { pass.tokens } else { 1 };
            let (ids, largest, draw) = sampling_inputs(b, logits, config, draws);
            let tokens = match rows {
                Some(rows) => b.graph.sample_rows(ids, largest, draw, rows),
                None => b.graph.sample(ids, largest, draw),
            };
            scatter(b, pass, tokens);
            b.graph.keep(tokens);
            tokens
        }
    }
}

/// Inputs of sampling: top-k ids, their logits, and sampling parameters of `draws` rows.
fn sampling_inputs(
    b: &mut Build<'_>,
    logits: Value,
    config: &Config,
    draws: usize,
) -> (Value, Value, Value) {
    let draw = b.graph.input(Inputs::DRAW, Type::f32([draws * 4]));
    let (ids, largest) = b.graph.top_k(logits, TopK::MOST.min(config.vocabulary));
    (ids, largest, draw)
}
