//! The decoder as a graph.

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

/// What one graph is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Tokens of a pass, at most.
    pub tokens: usize,
    /// Where the tokens come from.
    pub input: PassInput,
    /// Whether the table of per-layer inputs is a weight of the graph; else its rows are an input.
    pub table: bool,
    /// What the pass computes.
    pub output: PassOutput,
    /// Tokens the caches of global layers hold.
    pub context: usize,
    /// Tokens the rings of sliding layers hold: the window and the longest pass, less one, or the whole context.
    pub ring: usize,
    /// How caches keep numbers.
    pub cache: Element,
    /// How many tokens are never chosen; their ids are an input.
    pub suppressed: usize,
    /// Whether every named value is made, at the price of speed.
    pub traced: bool,
    /// How many of the last layers have their experts on the host: the graph is cut there.
    pub host_experts: usize,
    /// Whether tokens of a block (those of an image) see all of it on sliding layers; where blocks end is an input then.
    pub blocks: bool,
    /// Whether the rows that enter the head are kept for a drafter, in the state [`Inputs::HIDDEN`].
    pub hidden: bool,
    /// Passes end before this position, where that is known: attention of global layers then reads no more of their caches.
    pub short_context: Option<usize>,
    /// Where the caches are pools of pages, their sizes. Passes that fill caches then have the tokens of one sequence, all others a token of
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
    /// The host writes ids.
    Ids,
    /// The token that the last pass chose: it stays on the device.
    Token,
    /// The last token and drafts of what follows, in the state [`Inputs::DRAFTS`].
    Drafts,
    /// The host writes ids, for the table of per-layer inputs, and the rows that stand for the tokens: some are no tokens but
    /// parts of images and audio.
    Rows,
}

/// What a pass computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PassOutput {
    /// Only keys and values: prefill of a chunk of the prompt.
    Caches,
    /// Logits of all tokens.
    Logits,
    /// The most likely next token, of one token.
    Greedy,
    /// A drawn next token, of one token.
    Drawn,
    /// The most likely next token of each of a few tokens, computed batch-invariantly.
    GreedyEach,
    /// A drawn next token of each of a few tokens, computed batch-invariantly.
    DrawnEach,
    /// Logits of a few tokens, computed batch-invariantly.
    LogitsEach,
}

impl PassOutput {
    /// Whether each token is computed to the last bit as in a pass of its own.
    pub fn batch_invariant(self) -> bool {
        matches!(self, Self::GreedyEach | Self::DrawnEach | Self::LogitsEach)
    }
}

/// Names of inputs and states that the host writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs;

impl Inputs {
    /// Ids `u32[t]`.
    pub const IDS: &'static str = "ids";
    /// Rows that stand for tokens `[t, d]`.
    pub const ROWS: &'static str = "rows";
    /// For each token the position one past the end of its block, or 0 `u32[t]`.
    pub const BLOCKS: &'static str = "blocks";
    /// The last chosen token, a state `u32[1]`.
    pub const TOKEN: &'static str = "token";
    /// The last chosen token and drafts of what follows, a state `u32[t]`.
    pub const DRAFTS: &'static str = "drafts";
    /// The latest token of each sequence of a KV pool, a state `u32[slots]`.
    pub const LATEST: &'static str = "latest";
    /// Rows that entered the head, a state `[t, d]`.
    pub const HIDDEN: &'static str = "hidden";
    /// Rows of the table of per-layer inputs `[t, layers · p]`.
    pub const PER_LAYER: &'static str = "per_layer";
    /// Cosines and sines of sliding layers `[t, e/2, 2]`.
    pub const ROPE_SLIDING: &'static str = "rope.sliding";
    /// Cosines and sines of global layers `[t, e/2, 2]`.
    pub const ROPE_GLOBAL: &'static str = "rope.global";
    /// Tokens that are never chosen `u32[n]`.
    pub const SUPPRESSED: &'static str = "suppressed";
    /// Where values are traced, cosines of one and sines of zero; the width of a head follows.
    pub const UNTURNED: &'static str = "unturned.";
    /// The sequences of a pass over KV pools, with their block tables of sliding layers `u32[t, 4 + entries]`, or `[1, …]` of one sequence.
    pub const SEQUENCES_SLIDING: &'static str = "sequences.sliding";
    /// The same with their block tables of global layers.
    pub const SEQUENCES_GLOBAL: &'static str = "sequences.global";
    /// How to draw `[4]`, or `[t, 4]` for tokens of different sequences.
    pub const DRAW: &'static str = "draw";
    /// What experts on the host made for the layer before a segment `[t, d]`.
    pub const EXPERTS: &'static str = "experts";
    /// What enters experts on the host `[t, d]`.
    pub const X: &'static str = "x";
    /// Experts of each token, for the host `u32[t, k]`.
    pub const EXPERT_IDS: &'static str = "expert_ids";
    /// How much they count, for the host `[t, k]`.
    pub const EXPERT_WEIGHTS: &'static str = "expert_weights";
}

/// A graph and what comes out of it. Where experts stay on the host, the graph is cut.
#[derive(Debug)]
pub struct Decoder {
    /// The graph: one segment, and one more for each layer whose experts are on the host.
    pub segments: Vec<Segment>,
    /// Of the last segment: logits `[t, v]`, or the chosen token `u32[1]`; nothing where only caches are filled.
    pub result: Option<Value>,
    /// The factors of an adapter that the graph uses, as weights.
    pub factors: Vec<FactorGroup>,
    /// The same of folded down-projections.
    pub folded: Vec<FoldedLora>,
}

/// Writes the graph of one pass.
///
/// # Panics
/// If a token is chosen after more than one, or the catalogue is not of this configuration.
pub fn decoder(config: &Config, catalog: &Catalog, pass: &Pass) -> Decoder {
    adapted_decoder(config, catalog, pass, None)
}

/// The same with the factors of an adapter beside the weights it changes.
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
    let (mut context, mut stream) = begin(&mut b, config, pass);
    for layer in &config.layers {
        b.enter(&format!("blk.{}", layer.index));
        let last_writer = layer.index + 1 == config.owners();
        if pass.output == PassOutput::Caches && last_writer {
            attention::keys_and_values(&mut b, stream, layer, &context);
            return context.end(b, None);
        }
        stream = one_layer(&mut b, stream, layer, &mut context);
    }
    let result = choose(&mut b, stream, config, pass);
    context.end(b, Some(result))
}

/// The stream after the last layer, before the last norm, and the operations of each layer.
pub(super) fn layers(
    b: &mut Build<'_>,
    config: &Config,
    pass: &Pass,
) -> (Value, Vec<Range<usize>>) {
    let (mut context, mut stream) = begin(b, config, pass);
    let mut ranges = Vec::new();
    for layer in &config.layers {
        let first = b.graph.nodes().len();
        b.enter(&format!("blk.{}", layer.index));
        stream = one_layer(b, stream, layer, &mut context);
        ranges.push(first..b.graph.nodes().len());
    }
    (stream.or(None), ranges)
}

/// The stream on its way into the first layer.
fn begin<'a>(b: &mut Build<'_>, config: &'a Config, pass: &'a Pass) -> (LayerContext<'a>, Stream) {
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
        // Layers are made again one by one: nothing that all of them need is made inside one.
        context.make_extra(b);
    }
    b.enter("blk.0");
    (context, b.after_norm(h, "attn_norm"))
}

/// What all layers of a graph share.
pub(super) struct LayerContext<'a> {
    pub(super) config: &'a Config,
    pub(super) pass: &'a Pass,
    /// Per-layer inputs that are not made yet.
    pub(super) pending: Option<per_layer::Pending>,
    /// Per-layer inputs.
    pub(super) extra: Option<Value>,
    /// Segments that have ended.
    pub(super) segments: Vec<Segment>,
    /// Whether tokens are places of a canvas, which see each other and a prompt.
    pub(super) canvas: bool,
}

impl<'a> LayerContext<'a> {
    /// That of the layers of a canvas.
    pub(super) fn of_canvas(config: &'a Config, pass: &'a Pass) -> Self {
        Self { config, pass, pending: None, extra: None, segments: Vec::new(), canvas: true }
    }

    /// Makes what per-layer inputs take beside what has just been made.
    pub(super) fn project(&mut self, b: &mut Build<'_>) {
        if let Some(pending) = &mut self.pending {
            pending.project(b);
        }
    }

    /// Makes per-layer inputs, once.
    fn make_extra(&mut self, b: &mut Build<'_>) {
        if let Some(pending) = self.pending.take() {
            self.extra = Some(pending.made(b, self.config));
        }
    }

    /// Positions as a layer's heads see them.
    pub(super) fn positions(&self, b: &mut Build<'_>, layer: &Layer) -> Value {
        let name = match layer.kind {
            Kind::Sliding => Inputs::ROPE_SLIDING,
            Kind::Global => Inputs::ROPE_GLOBAL,
        };
        b.input(name, Type::f32([self.pass.tokens, layer.head / 2, 2]))
    }

    /// The sequences of a pass over KV pools, as layers of this kind take them.
    pub(super) fn sequences(&self, b: &mut Build<'_>, kind: Kind) -> Option<Sequences> {
        sequences(b, self.pass, kind)
    }

    /// How many positions a query of a layer sees, itself included; all if there is no window.
    pub(super) fn window(&self, layer: &Layer) -> Option<u32> {
        match layer.kind {
            Kind::Sliding => u32::try_from(self.config.window).ok(),
            Kind::Global => self.pass.short_context.and_then(|end| u32::try_from(end).ok()),
        }
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

/// Takes the residual stream on its way into a layer and gives it on its way into what follows.
pub(super) fn one_layer(
    b: &mut Build<'_>,
    stream: Stream,
    layer: &Layer,
    context: &mut LayerContext<'_>,
) -> Stream {
    let name = |what: &str| format!("layer.{}.{what}", layer.index);
    let stream = seen(b, stream, &name("attn_in"), layer.index.checked_sub(1));
    let (h, a) = attention::attention(b, stream, layer, context);
    context.make_extra(b);
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

/// Where every value is to be seen: the stream, which is the result of the layer before, and its norm.
fn seen(b: &mut Build<'_>, stream: Stream, name: &str, before: Option<usize>) -> Stream {
    if !b.traced() {
        return stream;
    }
    let (h, x) = b.rows(stream);
    b.tap(x, name);
    if let Some(before) = before {
        b.tap(h, format!("layer.{before}.out"));
    }
    Stream::made(h, x)
}

/// The norm after a layer: the next layer's, or the last one.
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

/// Logits, and the token they choose where one is wanted.
fn choose(b: &mut Build<'_>, stream: Stream, config: &Config, pass: &Pass) -> Value {
    b.enter("");
    // The head has too many workgroups for each to make the norm itself.
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
    // Graphs that choose nothing have it too: a saved session is the same whichever graph made it.
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
            let (ids, largest, draw) = drawing(b, logits, config, 1);
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
            let (ids, largest, draw) = drawing(b, logits, config, draws);
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

/// What a draw takes: ids, their logits, and so many ways to draw.
fn drawing(
    b: &mut Build<'_>,
    logits: Value,
    config: &Config,
    draws: usize,
) -> (Value, Value, Value) {
    let draw = b.graph.input(Inputs::DRAW, Type::f32([draws * 4]));
    let (ids, largest) = b.graph.top_k(logits, TopK::MOST.min(config.vocabulary));
    (ids, largest, draw)
}
