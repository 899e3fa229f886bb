//! Decoder graphs split at layers whose experts run on the host: the segments, and the states that carry values between them.

use rullama_engine::graph::{Graph, Origin, Type, Value};

use super::{Config, Inputs, feed_forward, graph::LayerContext};
use crate::{
    adapted::{Adapted, FactorGroup},
    build::{Build, Stream},
    tensors::Catalog,
};

/// A part of a decoder graph that is one submission.
#[derive(Debug)]
pub struct Segment {
    /// The graph of this part.
    pub graph: Graph,
    /// The experts the host computes after it; their sum is the input [`Inputs::EXPERTS`] of the next segment.
    pub experts: Option<HostExperts>,
}

/// Experts of one layer that the host computes, and the kept values of the segment that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostExperts {
    /// The layer.
    pub layer: usize,
    /// Input of the experts `[t, d]`.
    pub x: Value,
    /// Expert ids of each token `u32[t, k]`.
    pub ids: Value,
    /// Expert weights of each token `[t, k]`.
    pub weights: Value,
}

/// A separate graph of one layer's experts.
#[derive(Debug)]
pub struct ExpertGraph {
    /// The graph; its inputs are [`Inputs::X`], [`Inputs::EXPERT_IDS`] and [`Inputs::EXPERT_WEIGHTS`].
    pub graph: Graph,
    /// The weighted sum of each token's experts `[t, d]`.
    pub result: Value,
    /// LoRA factors that the graph uses.
    pub factors: Vec<FactorGroup>,
}

/// Whether a state only carries values between segments: it is meaningless after a pass.
pub fn crosses_cut(state: &str) -> bool {
    state.starts_with(CUT)
}

const CUT: &str = "cut.";

/// Builds the graph of one layer's experts, with their LoRA factors; `None` if the model has no experts.
///
/// # Panics
/// If the catalogue does not match the configuration.
pub fn expert_graph(
    config: &Config,
    catalog: &Catalog,
    layer: usize,
    tokens: usize,
    adapted: Option<&Adapted>,
) -> Option<ExpertGraph> {
    let experts = config.experts?;
    let mut b = Build::new(catalog, config.eps, false).with_adapter(adapted);
    b.enter(&format!("blk.{layer}"));
    let x = b.input(Inputs::X, Type::f32([tokens, config.width]));
    let ids = b.input(Inputs::EXPERT_IDS, Type::u32([tokens, experts.used]));
    let weights = b.input(Inputs::EXPERT_WEIGHTS, Type::f32([tokens, experts.used]));
    let result = feed_forward::mixture(&mut b, Stream::new(x, x), ids, weights, experts);
    b.graph.keep(result);
    Some(ExpertGraph { graph: b.graph, result, factors: b.factors })
}

/// Ends a segment before a layer's experts and starts the next one after them. Returns the residual stream `h`, the dense branch `m` and
/// the experts' output as values of the new segment.
pub(super) fn split(
    b: &mut Build<'_>,
    context: &mut LayerContext<'_>,
    experts: HostExperts,
    [h, m]: [Value; 2],
) -> [Value; 3] {
    let tokens = context.pass.tokens;
    let mut carried = vec![carry(b, "h", h, tokens), carry(b, "m", m, tokens)];
    carried.extend(context.extra.map(|extra| carry(b, "extra", extra, tokens)));
    [experts.x, experts.ids, experts.weights].into_iter().for_each(|value| b.graph.keep(value));
    let next =
        if b.graph.is_batch_invariant() { Graph::new_batch_invariant() } else { Graph::new() };
    let graph = std::mem::replace(&mut b.graph, next);
    context.segments.push(Segment { graph, experts: Some(experts) });

    let mut restored = carried.into_iter().map(|(name, ty)| b.graph.state(name, ty));
    let (h, m) = (restored.next(), restored.next());
    context.extra = restored.next();
    let y = b.input(Inputs::EXPERTS, Type::f32([tokens, context.config.width]));
    let [Some(h), Some(m)] = [h, m] else { unreachable!("both were carried") };
    [h, m, y]
}

/// Stores a value for the next segments, in a state per pass size.
fn carry(b: &mut Build<'_>, what: &str, value: Value, tokens: usize) -> (String, Type) {
    let (name, ty) = (format!("{CUT}{what}.{tokens}"), b.graph.ty(value).clone());
    // A value read from this state is stored already.
    if b.graph.info(value).origin != Origin::State(name.clone()) {
        let state = b.graph.state(name.clone(), ty.clone());
        b.graph.store(state, value);
    }
    (name, ty)
}
