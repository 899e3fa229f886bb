//! Decoder graphs that train adapters or measure their loss: a whole sequence from position 0, without KV caches.
//! Logits are computed for a part of the supervised rows at a time, followed by that part's gradient. Layers without kept activations
//! are recomputed from their input in the backward pass.

use std::ops::Range;

use rullama_engine::{
    graph::{Element, Gradients, Graph, Type, Value},
    ops::MASKED,
};

use super::{Config, MATRICES, Pass, PassInput, PassOutput, graph};
use crate::{
    build::Build,
    tensors::Catalog,
    training::{Learned, Parameter, Training},
};

/// Configuration of one training graph.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainPass {
    /// Maximum tokens of a sequence.
    pub tokens: usize,
    /// Maximum rows with a target.
    pub supervised: usize,
    /// Logit rows computed at a time.
    pub logit_rows: usize,
    /// Whether the per-layer input table is a weight of the graph; otherwise its rows are an input.
    pub table: bool,
    /// Weights that get adapters.
    pub adapters: Vec<Learned>,
    /// Dropout rate of adapter inputs.
    pub dropout: f32,
    /// Number of first layers that are recomputed in the backward pass (gradient checkpointing): only their input is kept.
    pub recomputed: usize,
    /// Whether gradients are computed; otherwise only the loss.
    pub learns: bool,
}

/// A training graph. Its states are the parameters, `<name>.grad` for each (summed over passes), and [`TrainPass::LOSS`].
#[derive(Debug)]
pub struct TrainGraph {
    /// The graph.
    pub graph: Graph,
    /// Trained parameters, in graph order.
    pub parameters: Vec<Parameter>,
    /// State: sum of the losses of supervised rows of all passes since it was last cleared.
    pub loss: Value,
}

impl TrainPass {
    /// The summed loss, a state `[1]`.
    pub const LOSS: &'static str = "loss";
    /// The gradient of the summed loss, an input `[1]`: one over the number of targets of all passes of a step.
    pub const SEED: &'static str = "seed";

    /// For each token the first position it attends to, an input `u32[t]`: the start of its own packed sequence.
    pub const STARTS: &'static str = "starts";

    /// Parts of the supervised rows whose logits are computed at a time.
    pub fn parts(&self) -> impl Iterator<Item = Range<usize>> {
        let (all, each) = (self.supervised, self.logit_rows.max(1));
        (0..all).step_by(each).map(move |first| first..(first + each).min(all))
    }

    /// Input of part `i`: row indices `u32`, [`MASKED`] for padding.
    pub fn rows_input(i: usize) -> String {
        format!("rows.{i}")
    }

    /// Input of part `i`: the target token of each row `u32`, [`MASKED`] for padding.
    pub fn targets_input(i: usize) -> String {
        format!("targets.{i}")
    }

    /// Padding value of rows and targets.
    pub const NONE: u32 = MASKED;

    fn pass(&self) -> Pass {
        Pass {
            tokens: self.tokens,
            input: PassInput::Ids,
            table: self.table,
            output: PassOutput::Logits,
            context: self.tokens,
            ring: self.tokens,
            cache: Element::F32,
            suppressed: 0,
            traced: false,
            host_experts: 0,
            blocks: false,
            hidden: false,
            short_context: None,
            pool: None,
        }
    }
}

/// The state in which a parameter's gradients are summed.
pub fn gradient_of(parameter: &str) -> String {
    format!("{parameter}.grad")
}

/// Builds a training graph.
///
/// # Panics
/// If the catalogue does not match the configuration, or no matmul of the graph uses an adapted weight.
pub fn train_graph(config: &Config, catalog: &Catalog, pass: &TrainPass) -> TrainGraph {
    let mut b = Build::new(catalog, config.eps, false);
    b.training = Some(Training::new(&pass.adapters, pass.dropout));
    let (h, layers) = graph::layers(&mut b, config, &pass.pass());
    let parameters = b.training.take().map(|training| training.parameters).unwrap_or_default();
    let names: Vec<&str> = parameters.iter().map(|(p, _)| p.name.as_str()).collect();
    for adapted in &pass.adapters {
        let used = names.contains(&format!("{}.lora_a", adapted.name).as_str());
        assert!(used, "no matmul uses {}", adapted.name);
    }

    b.enter("");
    let loss = b.graph.state(TrainPass::LOSS, Type::f32([1]));
    let dh = head(&mut b, config, pass, h, loss);
    if let Some(dh) = dh {
        backward(&mut b.graph, pass, (h, dh), &layers, &parameters);
    }
    let parameters = parameters.into_iter().map(|(parameter, _)| parameter).collect();
    TrainGraph { graph: b.graph, parameters, loss }
}

/// The loss of all supervised rows, and the gradient of the residual stream after the last layer if `pass.learns`.
fn head(
    b: &mut Build<'_>,
    config: &Config,
    pass: &TrainPass,
    h: Value,
    total: Value,
) -> Option<Value> {
    let seed = pass.learns.then(|| b.input(TrainPass::SEED, Type::f32([1])));
    let mut sum: Option<Value> = None;
    for (i, part) in pass.parts().enumerate() {
        let first = b.graph.nodes().len();
        let rows = b.input(&TrainPass::rows_input(i), Type::u32([part.len()]));
        let targets = b.input(&TrainPass::targets_input(i), Type::u32([part.len()]));
        let x = b.graph.gather_rows(h, rows);
        let x = b.norm(x, "output_norm");
        let head = if b.has("output.weight") { "output" } else { "token_embd" };
        let logits = b.linear(x, head);
        let logits = match config.softcap {
            Some(cap) => b.graph.softcap(logits, cap),
            None => logits,
        };
        let loss = b.graph.cross_entropy(logits, targets);
        let nodes = first..b.graph.nodes().len();
        b.graph.accumulate(total, loss);
        let Some(seed) = seed else { continue };
        let mut gradients = Gradients::new([(loss, seed)], &[h]);
        gradients.backward(&mut b.graph, nodes);
        let dh = gradients.of(h).expect("the loss depends on the stream");
        sum = Some(match sum {
            Some(sum) => b.graph.add(sum, dh),
            None => dh,
        });
    }
    sum
}

/// Backward pass over the layers, last to first; a parameter's gradient is accumulated as soon as it is computed.
fn backward(
    graph: &mut Graph,
    pass: &TrainPass,
    (h, dh): (Value, Value),
    layers: &[Range<usize>],
    parameters: &[(Parameter, Value)],
) {
    let wrt: Vec<Value> = parameters.iter().map(|(_, value)| *value).collect();
    let mut gradients = Gradients::new([(h, dh)], &wrt);
    let mut open: Vec<&(Parameter, Value)> = parameters.iter().collect();
    for (index, nodes) in layers.iter().enumerate().rev() {
        if index < pass.recomputed {
            gradients.backward_recomputed(graph, nodes.clone());
        } else {
            gradients.backward(graph, nodes.clone());
        }
        let inside = format!("blk.{index}.");
        let (done, rest): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|(parameter, _)| parameter.name.starts_with(&inside));
        open = rest;
        accumulate_gradients(graph, &gradients, &done);
    }
    let before = 0..layers.first().map_or(0, |layer| layer.start);
    gradients.backward(graph, before);
    accumulate_gradients(graph, &gradients, &open);
}

fn accumulate_gradients(graph: &mut Graph, gradients: &Gradients, done: &[&(Parameter, Value)]) {
    for (parameter, value) in done {
        let state = graph.state(gradient_of(&parameter.name), parameter.ty.clone());
        if let Some(gradient) = gradients.of(*value) {
            graph.accumulate_last(state, gradient);
        }
    }
}

/// Weights that adapters can be trained for, by name without `.weight`, first layer to last.
pub fn trainable(config: &Config, catalog: &Catalog) -> Vec<String> {
    let has = |name: &str| catalog.get(&format!("{name}.weight")).is_some();
    let mut names = Vec::new();
    for layer in &config.layers {
        let used = |name: &&&str| layer.owns_cache() || !["attn_k", "attn_v"].contains(*name);
        let full = MATRICES.iter().filter(used).map(|name| format!("blk.{}.{name}", layer.index));
        names.extend(full.filter(|name| has(name)));
    }
    names.extend(["per_layer_model_proj".to_owned()].into_iter().filter(|name| has(name)));
    names
}
