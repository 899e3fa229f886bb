//! `o[t, h, :] = Σ_j softmax_j(q[t, h, :] · k[j, h / g, :]) · v[j, h / g, :]` over the positions `j` that token `t` sees.
//!
//! Token `t` stands at position `p = position + t` and sees `max(0, p − window + 1) ..= p`; position `j` lies in slot `j % slots`
//! of its cache. `g = heads / kv heads` neighbouring query heads share a kv head. Scores are not scaled. Tokens beyond the live
//! ones give zeros.

pub(crate) mod cases;
mod choice;
mod gpu;
mod train;

pub use train::{AttentionGrad, AttentionTrain};

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Element, Graph, Op, Type, Value},
    precision::Q8_GROUP,
};

/// Attention over a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attention {
    /// How many positions a token sees, itself included; all if there is no window.
    pub window: Option<u32>,
}

impl Graph {
    /// Queries `[t, h, e]` over the caches `[slots, k, e]`: `[t, h·e]`.
    ///
    /// The caches already hold the run's own tokens. With a window, `slots` is at least `window + t − 1`, or no run goes
    /// beyond it.
    pub fn attention(
        &mut self,
        q: Value,
        k_cache: Value,
        v_cache: Value,
        window: Option<u32>,
    ) -> Value {
        self.apply(Attention { window }, &[q, k_cache, v_cache])
    }
}

impl Attention {
    /// The first position that the token at `position` sees.
    fn first_key(&self, position: usize) -> usize {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window as usize))
    }
}

impl Op for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [q, k, v] = inputs else { panic!("attention takes q, k and v") };
        let ([t, heads, width], [_, kv_heads, kv_width]) = (q.shape.dims(), k.shape.dims()) else {
            panic!("attention: {q} over {k}")
        };
        assert_eq!(k, v, "attention: both caches have one type");
        assert!(width == kv_width && heads.is_multiple_of(*kv_heads), "attention: {q} over {k}");
        assert!(width.is_multiple_of(16) && *width <= 512, "attention: heads of {width}");
        let whole = k.element != Element::Q8 || width.is_multiple_of(Q8_GROUP);
        assert!(whole, "attention: heads of {width} are no whole groups of {k}");
        vec![Type::f32([*t, heads * width])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (q, k, v, mut out) = (call.f32(0), call.f32(1), call.f32(2), call.out(0));
        let (&[t, heads, width], &[slots, kv_heads, _]) =
            (call.input(0).shape.dims(), call.input(1).shape.dims())
        else {
            unreachable!("infer has checked the shapes")
        };
        out.fill(0.0);
        for token in 0..t.min(call.step.count as usize) {
            let position = call.step.position as usize + token;
            for head in 0..heads {
                let kv_head = head / (heads / kv_heads);
                let at = (token * heads + head) * width;
                let (q, out) = (&q[at..at + width], &mut out[at..at + width]);
                let place = |key: usize| (key % slots * kv_heads + kv_head) * width;
                let keys = self.first_key(position)..=position;
                let score = |key: usize| dot(q, &k[place(key)..][..width]);
                let mut weights: Vec<f32> = keys.clone().map(score).collect();
                softmax(&mut weights);
                for (key, weight) in keys.zip(weights) {
                    let v = &v[place(key)..][..width];
                    out.iter_mut().zip(v).for_each(|(out, v)| *out += weight * v);
                }
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let (q, slots) = (&inputs[0].shape, inputs[1].shape.dims()[0]);
        let keys = self.window.map_or(slots, |window| slots.min(window as usize));
        4 * q.len() as u64 * keys as u64
    }

    /// How far the run has come is not known here: all slots that the window lets its tokens see.
    fn bytes_read(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let (tokens, slots) = (inputs[0].shape.dims()[0], inputs[1].shape.dims()[0]);
        let seen = self.window.map_or(slots, |window| window as usize + tokens - 1);
        inputs[0].bytes() + inputs[1..].iter().map(|cache| cache.bytes_of(seen, slots)).sum::<u64>()
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn softmax(scores: &mut [f32]) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|weight| *weight /= sum);
}
