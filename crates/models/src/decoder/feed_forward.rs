//! The feed-forward branch of a layer: dense, or dense plus a mixture of experts.

use rullama_engine::{
    graph::Value,
    ops::{Epilogue, Mixture, Prologue},
};

use super::{Config, Experts, HostExperts, Layer, attention, graph::LayerContext, segment::split};
use crate::{
    build::{Build, Stream},
    folded_lora::NextMatmul,
};

/// The stream, and `down · (f(gate · x) ⊙ (up · x))` as a branch.
pub(super) fn dense(
    b: &mut Build<'_>,
    stream: Stream,
    layer: &Layer,
    config: &Config,
) -> (Value, Value) {
    let (h, both) = b.gated(stream, "ffn_gate", "ffn_up");
    let mut next = attention::next_matmul(b, layer, config, "post_ffw_norm");
    if b.has("inp_gate.weight") {
        let scope = format!("blk.{}", layer.index);
        next = NextMatmul { scope, norm: None, names: &["inp_gate"], ..next };
    }
    let m = b.branch((both, h), "ffn_down", &next);
    b.tap(m, format!("layer.{}.mlp_out", layer.index));
    (h, m)
}

/// The stream, and the sum of the dense branch and the experts, each with its own norm.
pub(super) fn dense_and_experts(
    b: &mut Build<'_>,
    stream: Stream,
    layer: &Layer,
    experts: Experts,
    context: &mut LayerContext<'_>,
) -> (Value, Value) {
    let name = |what: &str| format!("layer.{}.{what}", layer.index);
    let (h, both) = b.gated(stream, "ffn_gate", "ffn_up");
    let m = b.linear(both, "ffn_down");
    b.tap(m, name("mlp_out"));
    let (ids, weights) = router(b, h, layer, experts);
    b.tap(ids, name("topk_index"));
    b.tap(weights, name("topk_weights"));

    let norm = b.spelled(&["pre_ffw_norm_2", "ffn_pre_norm_2"]);
    let [h, m, y] = if context.experts_on_host(layer) {
        let (layer, x) = (layer.index, b.norm(h, norm));
        split(b, context, HostExperts { layer, x, ids, weights }, [h, m])
    } else {
        let stream = b.after_norm(h, norm);
        [h, m, mixture(b, stream, ids, weights, experts)]
    };
    b.tap(y, name("experts_out"));
    let m_norm = b.spelled(&["post_ffw_norm_1", "ffn_post_norm_1"]);
    let y_norm = b.spelled(&["post_ffw_norm_2", "ffn_post_norm_2"]);
    let (m_norm, y_norm, eps) = (b.weight(m_norm), b.weight(y_norm), b.eps());
    (h, b.graph.norm_sum((m, m_norm), (y, y_norm), eps))
}

/// Expert ids and expert weights of each token.
fn router(b: &mut Build<'_>, h: Value, layer: &Layer, experts: Experts) -> (Value, Value) {
    // The router's input is the residual stream after a norm whose weight is the router's scale.
    let (eps, scale) = (b.eps(), b.tensor("ffn_gate_inp.scale"));
    let width = b.graph.ty(h).shape.width();
    let weight = b.weight("ffn_gate_inp");
    let (prologue, factors) =
        (Prologue::Norm { h, weight: scale, eps }, b.factors(&["ffn_gate_inp"]));
    let logits = b.graph.fused_linear_lora(&prologue, weight, factors.as_ref(), &Epilogue::Plain).1;
    b.tap(logits, format!("layer.{}.router_logits", layer.index));
    let per_expert = ["ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale"];
    let per_expert = per_expert.into_iter().find(|name| b.has(name)).map(|name| b.tensor(name));
    let factor = (width as f64).sqrt().recip() as f32;
    b.graph.router(logits, per_expert, experts.used, factor)
}

/// The weighted sum of the outputs of each token's experts.
pub(super) fn mixture(
    b: &mut Build<'_>,
    stream: Stream,
    ids: Value,
    weights: Value,
    experts: Experts,
) -> Value {
    let routes = b.graph.routes(ids, experts.count);
    let each = Mixture { routes, shares: None };
    let both = if b.has("ffn_gate_up_exps.weight") {
        b.gated_experts(stream, "ffn_gate_up_exps", &each)
    } else {
        let (_, x) = b.rows(stream);
        let gate = b.each_expert(x, "ffn_gate_exps", &routes);
        let up = b.each_expert(x, "ffn_up_exps", &routes);
        b.graph.geglu(gate, up)
    };
    if b.experts_unfused("ffn_down_exps") {
        let each = b.each_expert(both, "ffn_down_exps", &routes);
        return b.graph.experts_combine(each, weights);
    }
    let down = b.weight("ffn_down_exps");
    let sum = Mixture { routes, shares: Some(weights) };
    b.graph.fused_linear_experts(&Prologue::Rows(both), down, &sum, &Epilogue::Plain).1
}
