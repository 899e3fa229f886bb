//! The `k` experts of each token: `T` = the `k` largest of `ℓ[t, :]`, and `w[t, j] = softmax(factor · ℓ[t, T])_j · c[T_j]`.
//! Models without the scales `c` have `c = 1`.
//!
//! The largest comes first; of equal logits the lower id does. NaN counts as smaller than any number, so the ids are valid and distinct for
//! any logits.

mod backward;
pub(crate) mod cases;
mod gpu;

use std::cmp::Ordering;

pub use backward::RouterGrad;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
};

/// Index of the input with a scale per expert, if there is one: of the router, and of its gradient.
const SCALE: usize = 1;
const GRAD_SCALE: usize = 3;
/// Logits are clamped to this magnitude, so that differences and products stay finite.
const LARGEST: f32 = 1e30;

/// Selects the experts of each token and their weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Router {
    /// Experts per token.
    pub chosen: usize,
    /// Factor of the logits.
    pub factor: f32,
}

impl Router {
    /// Maximum number of experts: one lane each.
    pub const MAX_EXPERTS: usize = 256;
    /// Maximum experts per token.
    pub const MAX_CHOSEN: usize = 16;
}

impl Graph {
    /// The `chosen` experts of each token from logits `[t, experts]` and optionally a scale per expert `[experts]`: ids `u32[t, chosen]` and
    /// weights `[t, chosen]`. The logits are multiplied by `factor`, for the `1/√d` of the router's input.
    pub fn router(
        &mut self,
        logits: Value,
        scale: Option<Value>,
        chosen: usize,
        factor: f32,
    ) -> (Value, Value) {
        let inputs: Vec<Value> = [logits].into_iter().chain(scale).collect();
        let results = self.apply_all(Router { chosen, factor }, &inputs);
        (results[0], results[1])
    }
}

impl Op for Router {
    fn name(&self) -> &'static str {
        "router"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let ([logits] | [logits, _]) = inputs else {
            panic!("router takes logits and a scale per expert")
        };
        let (tokens, experts) = (logits.shape.rows(), logits.shape.width());
        for scale in &inputs[SCALE..] {
            assert_eq!(scale.shape.len(), experts, "router: {logits} with scales {scale}");
        }
        assert!(experts <= Self::MAX_EXPERTS, "router: {experts} experts");
        let most = Self::MAX_CHOSEN.min(experts);
        assert!((1..=most).contains(&self.chosen), "router: {} of {experts}", self.chosen);
        vec![Type::u32([tokens, self.chosen]), Type::f32([tokens, self.chosen])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (logits, scale) = (call.f32(0), scales(call, SCALE));
        let (mut ids, mut weights) = (call.out_u32(0), call.out(1));
        for (t, logits) in logits.chunks_exact(scale.len()).enumerate() {
            let mut experts: Vec<usize> = (0..scale.len()).collect();
            experts.sort_by(|a, b| larger_first(logits[*a], logits[*b]));
            experts.truncate(self.chosen);
            let shares = shares(logits, &experts, self.factor);
            for (j, (expert, share)) in experts.iter().zip(shares).enumerate() {
                ids[t * self.chosen + j] = *expert as u32;
                weights[t * self.chosen + j] = share * scale[*expert];
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::forward(self, call)
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let Some(dw) = dy[1] else { return vec![None, None] };
        let (logits, ids) = (node.inputs[0], node.outputs[0]);
        let scale = node.inputs.get(SCALE).copied();
        let inputs: Vec<Value> = [logits, ids, dw].into_iter().chain(scale).collect();
        let gradient = graph.apply(RouterGrad { factor: self.factor }, &inputs);
        [Some(gradient)].into_iter().chain(scale.map(|_| None)).collect()
    }
}

/// A scale per expert: those of input `at`, or ones.
fn scales(call: &CpuCall<'_>, at: usize) -> Vec<f32> {
    match call.inputs() > at {
        true => call.decoded(at),
        false => vec![1.0; call.input(0).shape.width()],
    }
}

fn larger_first(a: f32, b: f32) -> Ordering {
    a.is_nan().cmp(&b.is_nan()).then(b.partial_cmp(&a).unwrap_or(Ordering::Equal))
}

/// Softmax over the logits of the selected experts.
fn shares(logits: &[f32], experts: &[usize], factor: f32) -> Vec<f32> {
    let finite = |x: f32| if x.is_nan() { -LARGEST } else { x.clamp(-LARGEST, LARGEST) };
    let scaled: Vec<f32> = experts.iter().map(|e| finite(logits[*e]) * factor).collect();
    let largest = scaled.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = scaled.iter().map(|x| (x - largest).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}
