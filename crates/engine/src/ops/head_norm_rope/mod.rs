//! `y[t, h, :] = turn(x[t, h, :] · (mean(x[t, h, :]²) + eps)^(-1/2) · w)`: the norm of each head and its rotation.
//!
//! The rotation takes element `i` of a head with element `i + width / 2`; cosines and sines come in a table per token, made by
//! [`rope_table`].

pub(crate) mod cases;
pub(crate) mod gpu;
mod grad;
mod qkv;
mod table;

pub use grad::HeadNormRopeGrad;
pub(crate) use qkv::store_heads;
pub use qkv::{KvValues, QkvRope};
pub use table::rope_table;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
    ops::{Columns, Slice},
};

/// Norm of each head, then its rotation.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadNormRope {
    /// Numbers in a head.
    pub width: usize,
    /// Added to the mean, inside the root.
    pub eps: f32,
    /// Where the heads lie in their rows.
    pub columns: Columns,
}

impl Graph {
    /// Heads of `x` `[t, h·e]`, normed with the weight `[e]` and turned by the table `[t, e/2, 2]`: `[t, h, e]`.
    pub fn head_norm_rope(
        &mut self,
        x: impl Into<Slice>,
        weight: Value,
        rope: Value,
        eps: f32,
    ) -> Value {
        let (x, width) = (x.into(), self.ty(weight).shape.len());
        let columns = x.columns(self);
        self.apply(HeadNormRope { width, eps, columns }, &[x.value, weight, rope])
    }

    /// Heads of `x` `[t, h·e]`, normed without a weight and not turned: `[t, h, e]`.
    pub fn head_norm(&mut self, x: impl Into<Slice>, width: usize, eps: f32) -> Value {
        let x = x.into();
        let columns = x.columns(self);
        self.apply(HeadNormRope { width, eps, columns }, &[x.value])
    }
}

impl Op for HeadNormRope {
    fn name(&self) -> &'static str {
        "head_norm_rope"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let t = inputs[0].shape.rows();
        if let [_, weight, rope] = inputs {
            assert_table(rope, t, self.width);
            assert_eq!(weight.shape.len(), self.width, "head_norm_rope: weight {weight}");
        }
        vec![Type::f32([t, self.columns.heads(inputs[0], self.width), self.width])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, mut y) = (call.f32(0), call.out(0));
        let turned = (call.inputs() > 1).then(|| (call.numbers(1), call.f32(2)));
        let (width, turned) = (self.width, turned.as_ref());
        let weight = turned.map(|(weight, _)| weight.as_slice());
        for (token, y) in y.chunks_exact_mut(self.columns.width).enumerate() {
            let rope = turned.map(|(_, rope)| &rope[token * width..][..width]);
            let x = self.columns.of(&x, call.input(0), token);
            for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
                norm_turn(x, weight, rope, self.eps, y);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        vec![gpu::plain(self, call)]
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let whole = graph.ty(node.inputs[0]).shape.width() == self.columns.width;
        assert!(whole, "head_norm_rope: a slice has no gradient rule");
        let inputs: Vec<Value> =
            node.inputs[..1].iter().chain(&dy[0]).chain(&node.inputs[1..]).copied().collect();
        let op = HeadNormRopeGrad { width: self.width, eps: self.eps };
        let dx = (inputs.len() > node.inputs.len()).then(|| graph.apply(op, &inputs));
        // Weights are frozen and tables are constants.
        std::iter::once(dx).chain(node.inputs[1..].iter().map(|_| None)).collect()
    }
}

/// One head: the norm, then each pair `(i, i + half)` turned by its cosine and sine.
pub(crate) fn norm_turn(
    x: &[f32],
    weight: Option<&[f32]>,
    rope: Option<&[f32]>,
    eps: f32,
    y: &mut [f32],
) {
    let half = x.len() / 2;
    let mean = x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32;
    let scale = 1.0 / (mean + eps).sqrt();
    let normed = |j: usize| x[j] * scale * weight.map_or(1.0, |w| w[j]);
    for i in 0..half {
        let (a, b) = (normed(i), normed(i + half));
        let (cos, sin) = rope.map_or((1.0, 0.0), |rope| (rope[2 * i], rope[2 * i + 1]));
        y[i] = a * cos - b * sin;
        y[i + half] = a * sin + b * cos;
    }
}

pub(crate) fn assert_table(rope: &Type, t: usize, width: usize) {
    assert_eq!(rope.shape.dims(), [t, width / 2, 2], "the table of {t} tokens, heads of {width}");
}

#[cfg(test)]
mod tests {
    use super::norm_turn;

    #[test]
    fn pairs_lie_half_a_head_apart_and_turn_by_their_own_angles() {
        let (x, weight) = ([1.0, 2.0, 2.0, 4.0], [1.0, 1.0, 2.0, 1.0]);
        let mut y = [0.0; 4];
        // The first pair turns by a right angle, the second stands still.
        norm_turn(&x, Some(&weight), Some(&[0.0, 1.0, 1.0, 0.0]), 0.0, &mut y);
        let want = [-1.6, 0.8, 0.4, 1.6];
        assert!(y.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{y:?}");
    }
}
