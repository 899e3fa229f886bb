//! Attention where each token is told what it sees: texts side by side, windows to both sides, a canvas after a prompt.

use super::{Attention, gpu, reference::Reference};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Type, Value},
};

/// Attention of `q` `[t, h, e]` over the caches, or keys and values, `[slots, k, e]`: token `t` sees the positions from `spans[t, 0]` to
/// before `spans[t, 1]`, and position `j` lies in slot `j % slots`. Scores are not scaled. Tokens beyond the live ones give zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttentionSpans;

impl Graph {
    /// Attention of each token over its span `u32[t, 2]`: `[t, h·e]`. Spans of later tokens neither begin nor end earlier, and none
    /// is empty. Values may come as rows `[slots, k·e]`.
    pub fn attention_spans(&mut self, q: Value, k: Value, v: Value, spans: Value) -> Value {
        self.apply(AttentionSpans, &[q, k, v, spans])
    }
}

impl Op for AttentionSpans {
    fn name(&self) -> &'static str {
        "attention_spans"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [q, k, v, spans] = inputs else { panic!("attention_spans takes q, k, v and spans") };
        let ([t, heads, width], [_, kv_heads, kv_width]) = (q.shape.dims(), k.shape.dims()) else {
            panic!("attention_spans: {q} over {k}")
        };
        let alike = k.element == v.element && k.shape.len() == v.shape.len();
        assert!(alike, "attention_spans: keys {k} and values {v}");
        assert!(
            width == kv_width && heads.is_multiple_of(*kv_heads),
            "attention_spans: {q} over {k}"
        );
        let step = Attention::ENCODER_HEAD_STEP;
        let fits = width.is_multiple_of(step) && *width <= Attention::MOST_HEAD;
        assert!(fits, "attention_spans: heads of {width}");
        assert_eq!(**spans, Type::u32([*t, 2]), "attention_spans: a span for each token");
        vec![Type::f32([*t, heads * width])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (q, k, v, spans) = (call.f32(0), call.f32(1), call.f32(2), call.u32(3));
        let reference = Reference {
            q: &q,
            heads: call.input(0).shape.dims()[1],
            k: &k,
            v: &v,
            cache: call.input(1),
            blocks: None,
            spans: Some(&spans),
            step: call.step,
        };
        reference.attend(&Attention { window: None }, &mut call.out(0));
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::spans(call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        4 * inputs[0].shape.len() as u64 * inputs[1].shape.dims()[0] as u64
    }
}
