//! One denoising step as a graph.

use rullama_engine::graph::{Element, Graph, Type, Value};

use super::{
    super::{
        Kind,
        decoder::{LayerContext, Pass, PassInput, PassOutput, one_layer},
    },
    DiffusionConfig,
};
use crate::{build::Build, tensors::Catalog};

/// What one graph is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanvasPass {
    /// Whether the step before is taken into account; the first step of a canvas has none.
    pub conditioned: bool,
    /// Tokens the caches of global layers hold, canvas included.
    pub context: usize,
    /// Tokens the rings of sliding layers hold: the window and a canvas, or a pass of the prompt.
    pub ring: usize,
    /// How caches keep numbers.
    pub cache: Element,
    /// Whether logits are kept.
    pub traced: bool,
}

/// Names of what the host writes, beside the positions in [`Inputs`], and of states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanvasInputs;

impl CanvasInputs {
    /// The canvas, a state `u32[c]`.
    pub const CANVAS: &'static str = "canvas";
    /// The likeliest tokens of the step before, a state `u32[c]`.
    pub const BEST: &'static str = "best";
    /// Chances of the step before, a state `[c, v]`.
    pub const CHANCES: &'static str = "chances";
    /// What sliding layers see `u32[c, 2]`.
    pub const SPANS_SLIDING: &'static str = "spans.sliding";
    /// What global layers see `u32[c, 2]`.
    pub const SPANS_GLOBAL: &'static str = "spans.global";
    /// One over the temperature `[1]`.
    pub const COLD: &'static str = "cold";
    /// Numbers in [0, 1) that draw `[c]`.
    pub const UNIFORM: &'static str = "uniform";
    /// Tokens for places that are not accepted `u32[c]`.
    pub const NOISE: &'static str = "noise";
    /// The entropy bound `[1]`.
    pub const BOUND: &'static str = "bound";
}

/// A graph, and what comes out.
#[derive(Debug)]
pub struct Canvas {
    /// The graph.
    pub graph: Graph,
    /// Mean entropy, how many likeliest tokens changed, how many places were accepted `[3]`.
    pub numbers: Value,
    /// The likeliest tokens, the state [`CanvasInputs::BEST`].
    pub best: Value,
    /// The canvas after the step, the state [`CanvasInputs::CANVAS`].
    pub canvas: Value,
    /// Entropies `[c]`, kept where values are traced.
    pub entropy: Value,
    /// Logits `[c, v]`, kept where values are traced.
    pub logits: Value,
}

/// Writes the graph of one step: it runs at the position after the prompt.
///
/// # Panics
/// If the catalogue is not of this configuration.
pub fn canvas(config: &DiffusionConfig, catalog: &Catalog, pass: &CanvasPass) -> Canvas {
    let (decoder, c) = (&config.decoder, config.canvas);
    let mut b = Build::new(catalog, decoder.eps, false);
    let ids = b.graph.state(CanvasInputs::CANVAS, Type::u32([c]));
    let chances = b.graph.state(CanvasInputs::CHANCES, Type::f32([c, decoder.vocabulary]));
    let h = enter(&mut b, ids, chances, (config, pass));
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
    let cold = b.graph.input(CanvasInputs::COLD, Type::f32([1]));
    let z = b.graph.scale_by(logits, cold);
    let uniform = b.graph.input(CanvasInputs::UNIFORM, Type::f32([c]));
    let places = b.graph.canvas_softmax(z, uniform, chances);
    let noise = b.graph.input(CanvasInputs::NOISE, Type::u32([c]));
    let bound = b.graph.input(CanvasInputs::BOUND, Type::f32([1]));
    let best = b.graph.state(CanvasInputs::BEST, Type::u32([c]));
    let numbers = b.graph.canvas_accept(&places, noise, bound, (ids, best));
    b.graph.keep(numbers);
    if pass.traced {
        [logits, places.entropy].into_iter().for_each(|value| b.graph.keep(value));
    }
    Canvas { graph: b.graph, numbers, best, canvas: ids, entropy: places.entropy, logits }
}

/// What enters the first layer: the canvas' tokens and what the step before thought of each place, normed.
fn enter(
    b: &mut Build<'_>,
    ids: Value,
    chances: Value,
    (config, pass): (&DiffusionConfig, &CanvasPass),
) -> Value {
    let scale = (config.decoder.width as f64).sqrt() as f32;
    let table = b.weight("token_embd");
    let mut h = b.graph.embed(ids, table, scale);
    let eps = b.eps();
    if pass.conditioned {
        let expected = b.graph.linear_t(chances, table);
        let expected = b.graph.scale(expected, scale);
        let n = b.norm(expected, "self_cond_pre_norm");
        let [gate, up] = ["self_cond_gate", "self_cond_up"].map(|name| b.linear(n, name));
        let both = b.graph.geglu(gate, up);
        let s = b.linear(both, "self_cond_down");
        h = b.graph.add(h, s);
    }
    b.graph.rms_norm(h, None, eps)
}

/// What the places of a canvas see of this kind: `(input, spans)`.
pub(in super::super) fn spans_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Sliding => CanvasInputs::SPANS_SLIDING,
        Kind::Global => CanvasInputs::SPANS_GLOBAL,
    }
}
