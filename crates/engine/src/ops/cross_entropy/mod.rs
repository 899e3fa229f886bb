//! Cross entropy of logits and targets, summed over the rows with a target: `Σ_i (logsumexp(l_i) − l_i[y_i])`.
//!
//! Rows whose target is [`MASKED`] and rows past the step's count contribute nothing. The host divides by the number of targets of all
//! runs of an optimizer step: the gradient's seed is `1/N`.

pub(crate) mod cases;
mod gpu;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Element, Graph, NodeValues, Op, Step, Type, Value},
};

/// The target of a row without a loss.
pub const MASKED: u32 = u32::MAX;

/// Loss of logits `[t, v]` and targets `[t]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrossEntropy;

/// Gradient of the logits: `(softmax(l_i) − onehot(y_i)) · dloss`. Inputs: logits, targets, `dloss` `[1]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrossEntropyGrad;

impl Graph {
    /// The loss `[1]`, a sum over rows, of logits `[t, v]` and targets, ids `[t]`.
    pub fn cross_entropy(&mut self, logits: Value, targets: Value) -> Value {
        self.apply(CrossEntropy, &[logits, targets])
    }
}

impl Op for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        check(self.name(), inputs);
        vec![Type::f32([1])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (logits, targets) = (call.f32(0), call.u32(1));
        let width = call.input(0).shape.width();
        let rows = logits.chunks_exact(width).zip(targets.iter()).enumerate();
        let losses = rows.filter_map(|(row, (logits, target))| {
            let target = target_of(row, *target, width, call.step)?;
            let (max, sum) = statistics(logits);
            Some(max + sum.ln() - logits[target])
        });
        call.out(0)[0] = losses.sum();
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::loss(call)
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let (logits, targets) = (node.inputs[0], node.inputs[1]);
        let gradient = dy[0].map(|dy| graph.apply(CrossEntropyGrad, &[logits, targets, dy]));
        vec![gradient, None]
    }
}

impl Op for CrossEntropyGrad {
    fn name(&self) -> &'static str {
        "cross_entropy_grad"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        check(self.name(), inputs);
        assert_eq!(inputs[2].shape.len(), 1, "cross_entropy_grad: loss {}", inputs[2]);
        vec![inputs[0].clone()]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (logits, targets, mut y) = (call.f32(0), call.u32(1), call.out(0));
        let dloss = call.f32(2)[0];
        let width = call.input(0).shape.width();
        for (row, y) in y.chunks_exact_mut(width).enumerate() {
            let Some(target) = target_of(row, targets[row], width, call.step) else {
                y.fill(0.0);
                continue;
            };
            let logits = &logits[row * width..][..width];
            let (max, sum) = statistics(logits);
            for (i, y) in y.iter_mut().enumerate() {
                let hit = if i == target { 1.0 } else { 0.0 };
                *y = ((logits[i] - max).exp() / sum - hit) * dloss;
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::gradient(call)
    }
}

fn check(name: &str, inputs: &[&Type]) {
    let (logits, targets) = (inputs[0], inputs[1]);
    let fits = targets.element == Element::U32 && targets.shape.len() == logits.shape.rows();
    assert!(fits, "{name}: {logits} with targets {targets}");
}

/// The target of a row with a loss; ids beyond the vocabulary count as masked.
fn target_of(row: usize, target: u32, width: usize, step: &Step) -> Option<usize> {
    let live = row < step.count as usize;
    usize::try_from(target).ok().filter(|target| live && *target < width)
}

/// Largest logit, and the sum of `e^(l − max)`.
fn statistics(logits: &[f32]) -> (f32, f32) {
    let max = logits.iter().copied().fold(f32::MIN, f32::max);
    (max, logits.iter().map(|l| (l - max).exp()).sum())
}
