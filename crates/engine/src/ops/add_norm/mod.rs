//! Residual add, post-branch norm, layer scale and optionally the next norm in one: `h1 = s · (h + rms(a) ⊙ w)`, and `x = rms(h1) ⊙ w2`.
//! Without a post-branch norm, `h1 = s · (h + a)`. A LoRA up-projection may be added to the branch: `a + B z` takes the place of `a`, with `z` stored after `a` in the branch's rows.
//! The columns after `z` belong to the folded LoRA A of the next linear layer.

pub(crate) mod cases;
pub(crate) mod gpu;
#[cfg(test)]
mod tests;

use crate::{
    cpu::{CpuCall, dot},
    gpu::{Dispatch, Edge, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
    ops::{RmsNormGrad, fused},
};

/// A norm added to the residual stream. Inputs: `h`, `a`, `w`, then optionally `s`, `w2` and `B`.
#[derive(Debug, Clone, PartialEq)]
pub struct AddNorm {
    /// Added to each mean square before the root.
    pub eps: f32,
    /// Whether the branch is normed.
    pub post_norm: bool,
    /// Whether the sum is multiplied by the layer's scale.
    pub scaled: bool,
    /// Whether there is a second result, the norm of the first.
    pub next: bool,
    /// Whether a LoRA up-projection is added to the branch.
    pub lora: bool,
    /// Trailing columns of the branch that this operation does not read.
    pub folded: usize,
}

/// The inputs of [`AddNorm`]: residual and branch, `[t, d]`, the branch's norm weight `[d]`, and the layer's scale `[1]`; graph values in a
/// model, input indices (`usize`) inside an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Branch<V = Value> {
    /// The residual stream `h`.
    pub residual: V,
    /// The output of the branch, `a`.
    pub branch: V,
    /// Weight of the norm after the branch.
    pub weight: V,
    /// Whether there is that norm. If not, any other weight `[d]` takes the place of its weight and is not read there.
    pub post_norm: bool,
    /// The layer's output scale, if this is the layer's last branch.
    pub scale: Option<V>,
    /// The transposed LoRA up-projection of the branch, a weight `[r, d]`. The branch is then `[t, d + r]`: `z` is stored after `a`, and `B z`
    /// is not added yet.
    pub lora_b: Option<V>,
    /// Columns after that for the next linear layer: see [`FoldedDown`](crate::ops::FoldedDown).
    pub folded: usize,
}

impl Graph {
    /// `s · (h + rms(a) ⊙ w)`.
    pub fn add_norm(&mut self, branch: &Branch, eps: f32) -> Value {
        self.apply(branch.op(false, eps), &branch.inputs(None))
    }

    /// `h1 = s · (h + rms(a) ⊙ w)` and `rms(h1) ⊙ next`.
    pub fn add_norm_norm(&mut self, branch: &Branch, next: Value, eps: f32) -> (Value, Value) {
        let results = self.apply_all(branch.op(true, eps), &branch.inputs(Some(next)));
        (results[0], results[1])
    }
}

impl Branch {
    /// The operation, with or without the next norm.
    fn op(&self, next: bool, eps: f32) -> AddNorm {
        let (scaled, lora) = (self.scale.is_some(), self.lora_b.is_some());
        AddNorm { eps, post_norm: self.post_norm, scaled, next, lora, folded: self.folded }
    }
}

impl<V: Copy> Branch<V> {
    /// The inputs of the operation, with the weight of the next norm.
    pub(crate) fn inputs(&self, next: Option<V>) -> Vec<V> {
        let all = [self.residual, self.branch, self.weight].into_iter();
        all.chain(self.scale).chain(next).chain(self.lora_b).collect()
    }

    /// The branch with its inputs mapped by `name`, in the order of [`Self::inputs`].
    pub(crate) fn map<W>(
        &self,
        next: Option<V>,
        mut name: impl FnMut(V) -> W,
    ) -> (Branch<W>, Option<W>) {
        let (residual, branch, weight) =
            (name(self.residual), name(self.branch), name(self.weight));
        let scale = self.scale.map(&mut name);
        let next = next.map(&mut name);
        let lora_b = self.lora_b.map(&mut name);
        let Self { post_norm, folded, .. } = *self;
        (Branch { residual, branch, weight, post_norm, scale, lora_b, folded }, next)
    }
}

impl AddNorm {
    /// Index of the scale input.
    pub(crate) fn scale_input(&self) -> Option<usize> {
        self.scaled.then_some(3)
    }

    /// Index of the next norm's weight.
    pub(crate) fn next_input(&self) -> Option<usize> {
        self.next.then_some(3 + usize::from(self.scaled))
    }

    /// Index of the LoRA up-projection.
    pub(crate) fn lora_input(&self) -> Option<usize> {
        self.lora.then_some(3 + usize::from(self.scaled) + usize::from(self.next))
    }

    /// The LoRA up-projection as a separate operation, then the rest.
    fn unfused(&self, graph: &mut Graph, inputs: &[Value]) -> Vec<Value> {
        let d = graph.ty(inputs[0]).shape.width();
        let lora = self.lora_input();
        let rank = lora.map(|i| graph.ty(inputs[i]).shape.rows());
        let widths: Vec<usize> =
            [Some(d), rank, Some(self.folded)].into_iter().flatten().filter(|n| *n > 0).collect();
        let parts = graph.split_columns(inputs[1], &widths);
        let mut a = parts[0];
        if let Some(i) = lora {
            let lora = graph.linear_t(parts[1], inputs[i]);
            a = graph.add(a, lora);
        }
        let inputs = [&[inputs[0], a], &inputs[2..lora.unwrap_or(inputs.len())]].concat();
        graph.apply_all(Self { lora: false, folded: 0, ..self.clone() }, &inputs)
    }

    /// Whether the branch has columns beyond the stream's width.
    fn has_extra_columns(&self) -> bool {
        self.lora || self.folded > 0
    }
}

impl Op for AddNorm {
    fn name(&self) -> &'static str {
        if self.next { "add_norm_norm" } else { "add_norm" }
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let (name, h) = (self.name(), inputs[0]);
        let rank = self.lora_input().map_or(0, |i| inputs[i].shape.rows());
        let (rows, width) = (h.shape.rows(), h.shape.width());
        let branch = (inputs[1].shape.rows(), inputs[1].shape.width());
        let wanted = (rows, width + rank + self.folded);
        assert_eq!(branch, wanted, "{name}: branch {} for {h}", inputs[1]);
        for weight in std::iter::once(2).chain(self.next_input()).map(|i| inputs[i]) {
            assert_eq!(weight.shape.len(), h.shape.width(), "{name}: {h} with weight {weight}");
        }
        if let Some(scale) = self.scale_input().map(|i| inputs[i]) {
            assert_eq!(scale.shape.len(), 1, "{name}: scale {scale}");
        }
        vec![h.clone(); 1 + usize::from(self.next)]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        if self.has_extra_columns() {
            return fused::cpu(call, &|graph, inputs| self.unfused(graph, inputs));
        }
        let (h, a, w) = (call.f32(0), call.f32(1), call.decoded(2));
        let scale = self.scale_input().map_or(1.0, |i| call.decoded(i)[0]);
        let n = call.input(0).shape.width();
        let mut h1 = call.out(0);
        for (row, h1) in h1.chunks_exact_mut(n).enumerate() {
            let (h, a) = (&h[row * n..][..n], &a[row * n..][..n]);
            let rho = self.rho(a);
            for j in 0..n {
                let branch = if self.post_norm { a[j] * rho * w[j] } else { a[j] };
                h1[j] = (h[j] + branch) * scale;
            }
        }
        let Some(w2) = self.next_input().map(|i| call.decoded(i)) else { return };
        let mut x = call.out(1);
        for (h1, x) in h1.chunks_exact(n).zip(x.chunks_exact_mut(n)) {
            let rho = self.rho(h1);
            for j in 0..n {
                x[j] = h1[j] * rho * w2[j];
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        match self.lora || self.folded > 0 && call.input(0).shape.rows() > 1 {
            true => fused::gpu(call, &|graph, inputs| self.unfused(graph, inputs)),
            false => gpu::forward(self, call),
        }
    }

    fn stores(&self, _: &GpuCall<'_>, i: usize, preferred: Edge) -> Edge {
        match preferred {
            Edge::F16Columns(_) if i == 1 && !self.has_extra_columns() => preferred,
            _ => Edge::RowMajor,
        }
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        if self.has_extra_columns() {
            return fused::grad(graph, node, dy, &|graph, inputs| self.unfused(graph, inputs));
        }
        let (x, h1) = (&node.inputs, node.outputs[0]);
        let norm = RmsNormGrad { width: graph.ty(h1).shape.width(), eps: self.eps };
        let through_next = self.next_input().zip(dy.get(1).copied().flatten());
        let through_next =
            through_next.map(|(i, dx)| graph.rms_norm_grad(norm.clone(), h1, dx, Some(x[i])));
        let dh1 = match (dy[0], through_next) {
            (Some(direct), Some(through)) => Some(graph.add(direct, through)),
            (one, other) => one.or(other),
        };
        let mut flows = vec![None; x.len()];
        let Some(dh1) = dh1 else { return flows };
        let sum = self.scale_input().map_or(dh1, |i| graph.scale_by(dh1, x[i]));
        flows[0] = Some(sum);
        flows[1] = Some(match self.post_norm {
            true => graph.rms_norm_grad(norm, x[1], sum, Some(x[2])),
            false => sum,
        });
        flows
    }
}

impl AddNorm {
    fn rho(&self, row: &[f32]) -> f32 {
        let mean = dot(row, row) / row.len() as f32;
        1.0 / (mean + self.eps).sqrt()
    }
}
