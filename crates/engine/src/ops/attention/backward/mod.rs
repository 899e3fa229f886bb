//! Causal attention of packed training sequences, and its gradient.
//!
//! With `P = softmax(S)`, `S = q·k` where the mask lets a query see a key: `dV_j = Σ_i P_ij dO_i`, `dS_ij = P_ij (dO_i·V_j − dO_i·O_i)`,
//! `dQ_i = Σ_j dS_ij K_j`, `dK_j = Σ_i dS_ij Q_i`; sums over `i` run over all query heads of a group. `P` is recomputed from the stored
//! log-sum-exp of each row.

mod gpu;

use super::{
    forward::Attention,
    mask::{Mask, Visible},
    reference::Reference,
};
use crate::{
    cpu::{CpuCall, add_scaled, dot},
    gpu::{Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
    ops::sequences::RowPlaces,
};

/// Causal attention of packed sequences, without a KV cache. Inputs: `q` `[t, h, e]`, `k` and `v` `[t, k, e]`, and `starts` `u32[t]`, the first
/// position of each token's sequence. Outputs: `[t, h·e]` and the log-sum-exp of each row `[t, h]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttentionTrain {
    /// The number of positions a token sees, including itself; `None`: all.
    pub window: Option<u32>,
}

/// Gradient of [`AttentionTrain`]. Inputs: `q`, `k`, `v`, `starts`, the two outputs of the forward op and `dy`. Outputs: `dq`, `dk` and `dv`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttentionGrad {
    /// The window of the forward op.
    pub window: Option<u32>,
}

impl Graph {
    /// Causal attention of packed sequences, with a gradient: `[t, h·e]`. `starts` `u32[t]` holds the first position of each token's sequence
    /// and never decreases.
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
        let made = Attention { mask: Mask::Causal { window: self.window }, paging: None }
            .infer(&inputs[..3]);
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
        let (q, k, v, starts) = (call.f32(0), call.f32(1), call.f32(2), call.u32(3));
        let (mut out, mut log_sums) = (call.out(0), call.out(1));
        let visible = Visible::PackedCausal { window: self.window, starts: &starts };
        let places = RowPlaces::new(call.step, call.input(1).shape.dims()[0], None);
        let heads = call.input(0).shape.dims()[1];
        let reference = Reference::new((&q, heads), (&k, &v, call.input(1)), (visible, places));
        out.fill(0.0);
        for (row, log_sum) in log_sums.iter_mut().enumerate() {
            let scores: Vec<f32> = reference.scores(row).collect();
            let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            *log_sum = largest + scores.iter().map(|s| (s - largest).exp()).sum::<f32>().ln();
            let out = &mut out[row * reference.width..][..reference.width];
            for (key, score) in reference.keys(row).zip(scores) {
                add_scaled(out, (score - *log_sum).exp(), reference.value(row, key));
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self.window, call)
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
        assert!(
            dy[1].is_none(),
            "the log-sum-exp output is only for the gradient and has none itself"
        );
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
        let (q, k, v, starts) = (call.f32(0), call.f32(1), call.f32(2), call.u32(3));
        let (y, log_sums, dy) = (call.f32(4), call.f32(5), call.f32(6));
        let (mut dq, mut dk, mut dv) = (call.out(0), call.out(1), call.out(2));
        let visible = Visible::PackedCausal { window: self.window, starts: &starts };
        let places = RowPlaces::new(call.step, call.input(1).shape.dims()[0], None);
        let heads = call.input(0).shape.dims()[1];
        let reference = Reference::new((&q, heads), (&k, &v, call.input(1)), (visible, places));
        [&mut dq, &mut dk, &mut dv].into_iter().for_each(|gradient| gradient.fill(0.0));
        let width = reference.width;
        for (row, log_sum) in log_sums.iter().enumerate() {
            let (q, dy) = (reference.head(&q, row), reference.head(&dy, row));
            let delta = dot(dy, reference.head(&y, row));
            for key in reference.keys(row) {
                let (k, v) = (reference.key(row, key), reference.value(row, key));
                let weight = (dot(q, k) - log_sum).exp();
                let score = weight * (dot(dy, v) - delta);
                let at = reference.kv_at(row, key);
                add_scaled(&mut dq[row * width..][..width], score, k);
                add_scaled(&mut dk[at..at + width], score, q);
                add_scaled(&mut dv[at..at + width], weight, dy);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::gradients(self.window, call)
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        7 * inputs[0].shape.len() as u64 * inputs[0].shape.dims()[0] as u64
    }
}
