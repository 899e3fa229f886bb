//! Bidirectional attention: every token of a run sees every other one. Towers and encoders use it.

use super::{Attention, gpu, reference::Reference};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Step, Type, Value},
};

/// Attention of the live tokens of a run over each other, without a cache: `q` `[t, h, e]`, `k` and `v` `[t, k, e]`. Scores
/// are not scaled. Tokens beyond the live ones give zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttentionBidirectional;

impl Graph {
    /// Bidirectional attention of all tokens over all: `[t, h·e]`.
    pub fn attention_bidirectional(&mut self, q: Value, k: Value, v: Value) -> Value {
        self.apply(AttentionBidirectional, &[q, k, v])
    }
}

impl Op for AttentionBidirectional {
    fn name(&self) -> &'static str {
        "attention_bidirectional"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [q, k, v] = inputs else { panic!("attention_bidirectional takes q, k and v") };
        let ([t, heads, width], [keys, kv_heads, kv_width]) = (q.shape.dims(), k.shape.dims())
        else {
            panic!("attention_bidirectional: {q} over {k}")
        };
        assert_eq!(k, v, "attention_bidirectional: keys and values have one type");
        let fits = (t, width) == (keys, kv_width) && heads.is_multiple_of(*kv_heads);
        assert!(fits, "attention_bidirectional: {q} over {k}");
        let step = Attention::ENCODER_HEAD_STEP;
        let fits = width.is_multiple_of(step) && *width <= Attention::MOST_HEAD;
        assert!(fits, "attention_bidirectional: heads of {width}");
        vec![Type::f32([*t, heads * width])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (q, k, v) = (call.f32(0), call.f32(1), call.f32(2));
        let (tokens, heads) = (call.input(0).shape.dims()[0], call.input(0).shape.dims()[1]);
        let step = Step { position: 0, count: call.step.count.min(tokens as u32), ..*call.step };
        let blocks = vec![u32::MAX; tokens];
        let (cache, blocks) = (call.input(1), Some(blocks.as_slice()));
        let reference =
            Reference { q: &q, heads, k: &k, v: &v, cache, blocks, spans: None, step: &step };
        reference.attend(&Attention { window: None }, &mut call.out(0));
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::bidirectional(call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        4 * inputs[0].shape.len() as u64 * inputs[1].shape.dims()[0] as u64
    }
}
