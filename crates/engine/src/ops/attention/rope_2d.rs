//! The attention of an image encoder's block: head norms, 2-D RoPE and bidirectional attention.

use super::{
    encoder::{flash_matrix, pack::Heads},
    mask::Mask,
    problem::Problem,
    select::{Form, select},
};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Type, Value},
    ops::{Columns, Slice, fused},
};

/// Inputs: queries, keys and values `[t, h·e]` or longer rows, the norm weights of queries and keys `[e]`, and the RoPE table `[t, e/2, 2]`;
/// values have a norm without a weight and are not rotated.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionRope2d {
    /// The columns of queries, keys and values.
    pub columns: [Columns; 3],
    /// The eps of the norms.
    pub eps: f32,
}

impl Graph {
    /// Bidirectional attention of queries, keys and values with head norms and 2-D RoPE: `[t, h·e]`.
    pub fn attention_rope_2d(
        &mut self,
        heads: [Slice; 3],
        [q_norm, k_norm]: [Value; 2],
        rope: Value,
        eps: f32,
    ) -> Value {
        let columns = heads.map(|slice| slice.columns(self));
        let [q, k, v] = heads.map(|slice| slice.value);
        self.apply(AttentionRope2d { columns, eps }, &[q, k, v, q_norm, k_norm, rope])
    }
}

impl AttentionRope2d {
    /// The ops that this one fuses.
    fn unfused(&self, graph: &mut Graph, inputs: &[Value]) -> Vec<Value> {
        let slice = |i: usize| Slice::new(inputs[i], self.columns[i].first, self.columns[i].width);
        let width = graph.ty(inputs[3]).shape.len();
        let q = graph.head_norm_rope_2d(slice(0), inputs[3], inputs[5], self.eps);
        let k = graph.head_norm_rope_2d(slice(1), inputs[4], inputs[5], self.eps);
        let v = graph.head_norm(slice(2), width, self.eps);
        vec![graph.attention_bidirectional(q, k, v)]
    }
}

impl Op for AttentionRope2d {
    fn name(&self) -> &'static str {
        "attention_rope_2d"
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
        let problem = Problem {
            tokens,
            heads,
            kv_heads,
            width,
            slots: tokens,
            mask: Mask::Bidirectional,
            raw_queries: true,
            pool: None,
        };
        let heads = Heads::raw(&self.columns, [0, 1, 2].map(|i| call.input(i)), self.eps);
        let packed = match select(&problem, call.facts) {
            Form::EncoderFlashMatrix(units) => {
                return flash_matrix::dispatches(&problem, &heads, units);
            }
            Form::EncoderFlash(flash) => flash.packed(&heads, &problem),
            _ => None,
        };
        match packed {
            Some(dispatches) => dispatches.into(),
            None => fused::gpu(call, &|graph, inputs| self.unfused(graph, inputs)),
        }
    }

    fn operations(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        4 * outputs[0].shape.len() as u64 * inputs[0].shape.rows() as u64
    }
}
