//! The graph of one denoising step.

use rullama_engine::graph::{Element, Graph, Type, Value};

use super::DiffusionConfig;
use crate::{
    build::Build,
    decoder::{
        Kind, Pass, PassInput, PassOutput,
        graph::{LayerContext, one_layer},
    },
    tensors::Catalog,
};

/// Configuration of one denoising graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanvasPass {
    /// Whether the step is conditioned on the previous one; the first step of a canvas is not.
    pub conditioned: bool,
    /// KV cache capacity of global layers in tokens, including the canvas.
    pub context: usize,
    /// Ring buffer capacity of sliding layers in tokens: the window plus a canvas or a prompt chunk.
    pub ring: usize,
    /// KV cache format.
    pub cache: Element,
    /// Whether logits and entropies are kept.
    pub traced: bool,
}

/// Names of states and of inputs that the host writes, in addition to the RoPE tables of [`Inputs`](crate::decoder::Inputs).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanvasInputs;

impl CanvasInputs {
    /// The canvas, a state `u32[c]`.
    pub const CANVAS: &'static str = "canvas";
    /// The most likely tokens of the previous step, a state `u32[c]`.
    pub const BEST: &'static str = "best";
    /// Token probabilities of the previous step, a state `[c, v]`.
    pub const PROBABILITIES: &'static str = "probabilities";
    /// Position range that each canvas position attends to on sliding layers `u32[c, 2]`.
    pub const SPANS_SLIDING: &'static str = "spans.sliding";
    /// Position range that each canvas position attends to on global layers `u32[c, 2]`.
    pub const SPANS_GLOBAL: &'static str = "spans.global";
    /// One over the temperature `[1]`.
    pub const INVERSE_TEMPERATURE: &'static str = "inverse_temperature";
    /// Uniform random values in [0, 1) for sampling `[c]`.
    pub const UNIFORM: &'static str = "uniform";
    /// Random tokens for positions that are not accepted `u32[c]`.
    pub const NOISE: &'static str = "noise";
    /// The entropy bound `[1]`.
    pub const BOUND: &'static str = "bound";
}

/// A denoising graph and its outputs.
#[derive(Debug)]
pub struct Canvas {
    /// The graph.
    pub graph: Graph,
    /// Mean entropy, number of changed most likely tokens, number of accepted positions `[3]`.
    pub stats: Value,
    /// The most likely tokens, the state [`CanvasInputs::BEST`].
    pub best: Value,
    /// The canvas after the step, the state [`CanvasInputs::CANVAS`].
    pub canvas: Value,
    /// Entropies `[c]`, kept in traced graphs.
    pub entropy: Value,
    /// Logits `[c, v]`, kept in traced graphs.
    pub logits: Value,
}

/// Builds the graph of one denoising step, which runs at the position after the prompt.
///
/// # Panics
/// If the catalogue does not match the configuration.
pub fn canvas(config: &DiffusionConfig, catalog: &Catalog, pass: &CanvasPass) -> Canvas {
    let (decoder, c) = (&config.decoder, config.canvas);
    let mut b = Build::new(catalog, decoder.eps, false);
    let ids = b.graph.state(CanvasInputs::CANVAS, Type::u32([c]));
    let probabilities =
        b.graph.state(CanvasInputs::PROBABILITIES, Type::f32([c, decoder.vocabulary]));
    let h = embed_canvas(&mut b, ids, probabilities, (config, pass));
    let layers = Pass {
        tokens: c,
        input: PassInput::Ids,
        table: false,
        output: PassOutput::Logits,
        context: pass.context,
        ring: pass.ring,
        cache: pass.cache,
        suppressed: 0,
        traced: false,
        host_experts: 0,
        blocks: false,
        hidden: false,
        short_context: None,
        pool: None,
    };
    let mut context = LayerContext::of_canvas(decoder, &layers);
    b.enter("blk.0");
    let mut stream = b.after_norm(h, "attn_norm");
    for layer in &decoder.layers {
        b.enter(&format!("blk.{}", layer.index));
        stream = one_layer(&mut b, stream, layer, &mut context);
    }
    b.enter("");
    let (_, x) = b.rows(stream);
    let head = if b.has("output.weight") { "output" } else { "token_embd" };
    let logits = b.linear(x, head);
    let logits = match decoder.softcap {
        Some(cap) => b.graph.softcap(logits, cap),
        None => logits,
    };
    let inverse_temperature = b.graph.input(CanvasInputs::INVERSE_TEMPERATURE, Type::f32([1]));
    let z = b.graph.scale_by(logits, inverse_temperature);
    let uniform = b.graph.input(CanvasInputs::UNIFORM, Type::f32([c]));
    let positions = b.graph.canvas_softmax(z, uniform, probabilities);
    let noise = b.graph.input(CanvasInputs::NOISE, Type::u32([c]));
    let bound = b.graph.input(CanvasInputs::BOUND, Type::f32([1]));
    let best = b.graph.state(CanvasInputs::BEST, Type::u32([c]));
    let stats = b.graph.canvas_accept(&positions, noise, bound, (ids, best));
    b.graph.keep(stats);
    if pass.traced {
        [logits, positions.entropy].into_iter().for_each(|value| b.graph.keep(value));
    }
    Canvas { graph: b.graph, stats, best, canvas: ids, entropy: positions.entropy, logits }
}

/// Input of the first layer: the canvas' token embeddings plus self-conditioning on the previous step, normed.
fn embed_canvas(
    b: &mut Build<'_>,
    ids: Value,
    probabilities: Value,
    (config, pass): (&DiffusionConfig, &CanvasPass),
) -> Value {
    let scale = (config.decoder.width as f64).sqrt() as f32;
    let table = b.weight("token_embd");
    let mut h = b.graph.embed(ids, table, scale);
    let eps = b.eps();
    if pass.conditioned {
        let expected = b.graph.linear_t(probabilities, table);
        let expected = b.graph.scale(expected, scale);
        let n = b.norm(expected, "self_cond_pre_norm");
        let [gate, up] = ["self_cond_gate", "self_cond_up"].map(|name| b.linear(n, name));
        let both = b.graph.geglu(gate, up);
        let s = b.linear(both, "self_cond_down");
        h = b.graph.add(h, s);
    }
    b.graph.rms_norm(h, None, eps)
}

/// Name of the input with the attention ranges of layers of this kind.
pub(crate) fn spans_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Sliding => CanvasInputs::SPANS_SLIDING,
        Kind::Global => CanvasInputs::SPANS_GLOBAL,
    }
}
