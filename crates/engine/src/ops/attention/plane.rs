//! What a block of a picture's tower does with its heads: their norms, their rotation in a plane, and bidirectional attention.

use super::{blocks, choice::Sizes, heads::Heads, plain_rows::PlainRows};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Type, Value},
    ops::{Columns, Slice, fused},
};

/// Inputs: queries, keys and values `[t, h·e]` or longer, the weights of the norms of queries and keys `[e]`, and the table
/// `[t, e/2, 2]`; values have a norm without a weight and are not turned.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionPlane {
    /// Where queries, keys and values lie in their rows.
    pub columns: [Columns; 3],
    /// Added to each mean, inside the root.
    pub eps: f32,
}

impl Graph {
    /// Queries, keys and values with the norms of heads, turned by a table for positions in a plane, then bidirectional attention: `[t, h·e]`.
    pub fn attention_plane(
        &mut self,
        heads: [Slice; 3],
        [q_norm, k_norm]: [Value; 2],
        rope: Value,
        eps: f32,
    ) -> Value {
        let columns = heads.map(|slice| slice.columns(self));
        let [q, k, v] = heads.map(|slice| slice.value);
        self.apply(AttentionPlane { columns, eps }, &[q, k, v, q_norm, k_norm, rope])
    }
}

impl AttentionPlane {
    /// The operations this one stands for.
    fn unfused(&self, graph: &mut Graph, inputs: &[Value]) -> Vec<Value> {
        let slice = |i: usize| Slice::new(inputs[i], self.columns[i].first, self.columns[i].width);
        let width = graph.ty(inputs[3]).shape.len();
        let q = graph.head_norm_rope_2d(slice(0), inputs[3], inputs[5], self.eps);
        let k = graph.head_norm_rope_2d(slice(1), inputs[4], inputs[5], self.eps);
        let v = graph.head_norm(slice(2), width, self.eps);
        vec![graph.attention_bidirectional(q, k, v)]
    }
}

impl Op for AttentionPlane {
    fn name(&self) -> &'static str {
        "attention_plane"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        fused::infer(inputs, &|graph, inputs| self.unfused(graph, inputs))
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        fused::cpu(call, &|graph, inputs| self.unfused(graph, inputs));
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let width = call.input(3).shape.len();
        let tokens = call.input(0).shape.rows();
        let [heads, kv_heads] = [0, 1].map(|i| self.columns[i].heads(call.input(i), width));
        let sizes = Sizes { tokens, heads, kv_heads, width, keys: tokens };
        let heads = Heads::normed(&self.columns, [0, 1, 2].map(|i| call.input(i)), self.eps);
        if let Some(units) = blocks::units(width, call.facts) {
            return blocks::bidirectional(&sizes, &heads, units);
        }
        let rows = PlainRows::new(width, call.facts);
        match rows.and_then(|rows| rows.behind(&heads, &sizes)) {
            Some(dispatches) => dispatches.into(),
            None => fused::gpu(call, &|graph, inputs| self.unfused(graph, inputs)),
        }
    }

    fn operations(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        4 * outputs[0].shape.len() as u64 * inputs[0].shape.rows() as u64
    }
}
