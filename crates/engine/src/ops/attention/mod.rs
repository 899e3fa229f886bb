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
    cpu::{CpuCall, add_scaled, dot},
    gpu::{Dispatch, GpuCall},
    graph::{Element, Graph, Op, Step, Type, Value},
    precision::Q8_GROUP,
    threads::for_pieces,
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
        let (q, k, v) = (&*q, &*k, &*v);
        out.fill(0.0);
        let (first, live) = (call.step.position as usize, t.min(call.step.count as usize));
        let row = |weights: &mut Vec<f32>, index: usize, out: &mut [f32]| {
            let (position, head) = (first + index / heads, index % heads);
            let kv_head = head / (heads / kv_heads);
            let q = &q[index * width..][..width];
            let place = |key: usize| (key % slots * kv_heads + kv_head) * width;
            let keys = self.first_key(position)..=position;
            weights.clear();
            weights.extend(keys.clone().map(|key| dot(q, &k[place(key)..][..width])));
            softmax(weights);
            for (key, weight) in keys.zip(weights) {
                add_scaled(out, *weight, &v[place(key)..][..width]);
            }
        };
        let last = first + live;
        let seen = (last - self.first_key(last)) as u64;
        let out = &mut out[..live * heads * width];
        for_pieces(out, width, 2 * out.len() as u64 * seen, Vec::new, row);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let (q, slots) = (&inputs[0].shape, inputs[1].shape.dims()[0]);
        let keys = self.window.map_or(slots, |window| slots.min(window as usize));
        4 * q.len() as u64 * keys as u64
    }

    fn bytes_read(&self, inputs: &[&Type], step: &Step) -> u64 {
        let (first, slots) = (step.position as usize, inputs[1].shape.dims()[0]);
        let seen = (first + step.count as usize - self.first_key(first)).min(slots) as u64;
        let slot = inputs[1].bytes() / (slots as u64).max(1);
        inputs[0].bytes() + 2 * slot * seen
    }
}

fn softmax(scores: &mut [f32]) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|weight| *weight /= sum);
}
