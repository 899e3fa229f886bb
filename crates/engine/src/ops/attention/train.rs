//! Attention of a whole sequence over itself, and its gradient.
//!
//! With `P = softmax(S)`, `S = q·k` where seen: `dV_j = Σ_i P_ij dO_i`, `dS_ij = P_ij (dO_i·V_j − dO_i·O_i)`, `dQ_i = Σ_j dS_ij K_j`,
//! `dK_j = Σ_i dS_ij Q_i`; sums over `i` run over all query heads of a group. `P` is made again from the kept logarithms of the
//! rows' sums.

use super::{Attention, gpu};
use crate::{
    cpu::{CpuCall, add_scaled, dot},
    gpu::{Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
};

/// Attention of a sequence over itself, without a cache: takes `q` `[t, h, e]`, `k` and `v` `[t, k, e]`, and `starts` `u32[t]`,
/// before which tokens see nothing; makes `[t, h·e]` and the logarithm of each row's sum of exponentials `[t, h]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttentionTrain {
    /// How many positions a token sees, itself included; all if there is no window.
    pub window: Option<u32>,
}

/// Gradient of [`AttentionTrain`]: takes `q`, `k`, `v`, `starts`, its two results and `dy`; makes `dq`, `dk` and `dv`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttentionGrad {
    /// As in the operation it belongs to.
    pub window: Option<u32>,
}

impl Graph {
    /// Attention of a whole sequence from position 0 over itself, with a gradient: `[t, h·e]`. Several sequences may lie one after
    /// the other: `starts` `u32[t]` says where each token's own begins; starts never fall.
    pub fn attention_train(
        &mut self,
        q: Value,
        (k, v): (Value, Value),
        starts: Value,
        window: Option<u32>,
    ) -> Value {
        self.apply_all(AttentionTrain { window }, &[q, k, v, starts])[0]
    }
}

impl Op for AttentionTrain {
    fn name(&self) -> &'static str {
        "attention_train"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let made = Attention { window: self.window }.infer(&inputs[..3]);
        let [t, heads, _] = inputs[0].shape.dims() else { unreachable!("infer has checked it") };
        assert_eq!(
            inputs[1].shape.dims()[0],
            *t,
            "attention_train: {} and {}",
            inputs[0],
            inputs[1]
        );
        assert_eq!(inputs[3], &Type::u32([*t]), "attention_train: starts of {}", inputs[0]);
        made.into_iter().chain([Type::f32([*t, *heads])]).collect()
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (q, k, v) = (call.f32(0), call.f32(1), call.f32(2));
        let (mut out, mut log_sums) = (call.out(0), call.out(1));
        let starts = call.u32(3);
        let layout = Layout::new(call, self.window, &starts);
        out.fill(0.0);
        for (place, log_sum) in log_sums.iter_mut().enumerate() {
            let scores = layout
                .keys(place)
                .map(|key| dot(layout.head(&q, place), layout.key(&k, place, key)));
            let scores: Vec<f32> = scores.collect();
            let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            *log_sum = largest + scores.iter().map(|s| (s - largest).exp()).sum::<f32>().ln();
            let out = &mut out[place * layout.width..][..layout.width];
            for (key, score) in layout.keys(place).zip(scores) {
                add_scaled(out, (score - *log_sum).exp(), layout.key(&v, place, key));
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::train(self.window, call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        2 * inputs[0].shape.len() as u64 * inputs[0].shape.dims()[0] as u64
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        assert!(dy[1].is_none(), "the rows' sums are kept for the gradient and have none");
        let Some(dy) = dy[0] else { return vec![None; 4] };
        let inputs = [node.inputs.as_slice(), &node.outputs, &[dy]].concat();
        let made = graph.apply_all(AttentionGrad { window: self.window }, &inputs);
        made.into_iter().map(Some).chain([None]).collect()
    }
}

impl Op for AttentionGrad {
    fn name(&self) -> &'static str {
        "attention_grad"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [q, k, v, _, y, _, dy] = inputs else { panic!("attention_grad takes seven values") };
        assert_eq!(y.shape.len(), dy.shape.len(), "attention_grad: {y} and {dy}");
        vec![(*q).clone(), (*k).clone(), (*v).clone()]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (q, k, v) = (call.f32(0), call.f32(1), call.f32(2));
        let (y, log_sums, dy) = (call.f32(4), call.f32(5), call.f32(6));
        let (mut dq, mut dk, mut dv) = (call.out(0), call.out(1), call.out(2));
        let starts = call.u32(3);
        let layout = Layout::new(call, self.window, &starts);
        [&mut dq, &mut dk, &mut dv].into_iter().for_each(|gradient| gradient.fill(0.0));
        for place in 0..log_sums.len() {
            let (q, dy) = (layout.head(&q, place), layout.head(&dy, place));
            let delta = dot(dy, layout.head(&y, place));
            for key in layout.keys(place) {
                let (k, v) = (layout.key(&k, place, key), layout.key(&v, place, key));
                let weight = (dot(q, k) - log_sums[place]).exp();
                let score = weight * (dot(dy, v) - delta);
                let at = layout.key_at(place, key);
                add_scaled(&mut dq[place * layout.width..][..layout.width], score, k);
                add_scaled(&mut dk[at..at + layout.width], score, q);
                add_scaled(&mut dv[at..at + layout.width], weight, dy);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::backward(self.window, call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        7 * inputs[0].shape.len() as u64 * inputs[0].shape.dims()[0] as u64
    }
}

/// Where heads lie in values of a sequence.
struct Layout<'a> {
    window: Option<u32>,
    starts: &'a [u32],
    heads: usize,
    kv_heads: usize,
    width: usize,
}

impl<'s> Layout<'s> {
    fn new(call: &CpuCall<'_>, window: Option<u32>, starts: &'s [u32]) -> Self {
        let (q, k) = (call.input(0).shape.dims(), call.input(1).shape.dims());
        Self { window, starts, heads: q[1], kv_heads: k[1], width: q[2] }
    }

    /// What the query at this token and head sees.
    fn keys(&self, place: usize) -> std::ops::RangeInclusive<usize> {
        let position = place / self.heads;
        let first = Attention { window: self.window }.first_key(position);
        first.max(self.starts[position] as usize)..=position
    }

    fn head<'a>(&self, numbers: &'a [f32], place: usize) -> &'a [f32] {
        &numbers[place * self.width..][..self.width]
    }

    fn key_at(&self, place: usize, key: usize) -> usize {
        let kv_head = place % self.heads / (self.heads / self.kv_heads);
        (key * self.kv_heads + kv_head) * self.width
    }

    fn key<'a>(&self, numbers: &'a [f32], place: usize, key: usize) -> &'a [f32] {
        &numbers[self.key_at(place, key)..][..self.width]
    }
}
