//! Per-layer input embeddings (PLE).

use rullama_engine::{
    graph::{Type, Value},
    ops::Ple,
};

use super::{Config, Inputs, Layer, Pass, attention};
use crate::build::{Build, Stream};

/// Per-layer inputs `[t, layers · p]` that are not computed yet: table rows of the tokens, and a projection of the first hidden state
/// `h`. The first layer reads them at its end, so that they can overlap with its matmuls.
pub(super) struct Pending {
    rows: Value,
    h: Value,
    projection: Option<Value>,
}

/// Looks up the table rows; `None` for models without per-layer inputs.
pub(super) fn inputs(
    b: &mut Build<'_>,
    config: &Config,
    pass: &Pass,
    ids: Value,
    h: Value,
) -> Option<Pending> {
    let per_layer = config.per_layer?;
    let all = config.layers.len() * per_layer.width;
    let rows = if pass.table {
        let table = b.weight("per_layer_token_embd");
        b.graph.embed(ids, table, 1.0)
    } else {
        b.graph.input(Inputs::PER_LAYER, Type::f32([pass.tokens, all]))
    };
    Some(Pending { rows, h, projection: None })
}

impl Pending {
    /// The projection of the first hidden state, computed once.
    pub(super) fn project(&mut self, b: &mut Build<'_>) -> Value {
        if let Some(projection) = self.projection {
            return projection;
        }
        let here = b.enter("");
        let projection = b.linear(self.h, "per_layer_model_proj");
        b.enter(&here);
        self.projection = Some(projection);
        projection
    }

    /// Computes the per-layer inputs.
    pub(super) fn finish(mut self, b: &mut Build<'_>, config: &Config) -> Value {
        let projection = self.project(b);
        let here = b.enter("");
        let weight = b.weight("per_layer_proj_norm");
        let op = Ple { model_width: config.width, eps: b.eps() };
        let inputs = b.graph.ple(op, self.rows, projection, weight);
        b.tap(inputs, "ple_inputs");
        b.enter(&here);
        inputs
    }
}

/// The stream, and the per-layer branch `proj · (gelu(inp_gate · h) ⊙ input)`.
pub(super) fn branch(
    b: &mut Build<'_>,
    stream: Stream,
    extra: Value,
    layer: &Layer,
    config: &Config,
) -> (Value, Value) {
    let (h, gated) = b.gated_slice(stream, "inp_gate", extra, layer.index);
    let next = attention::next_matmul(b, layer, config, "post_norm");
    let out = b.branch((gated, h), "proj", &next);
    b.tap(out, format!("layer.{}.ple_out", layer.index));
    (h, out)
}
