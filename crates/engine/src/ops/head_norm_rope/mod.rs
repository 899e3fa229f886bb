//! `y[t, h, :] = turn(x[t, h, :] · (mean(x[t, h, :]²) + eps)^(-1/2) · w)`: the norm of each head and its rotation.
//!
//! The rotation takes element `i` of a head with element `i + width / 2`; cosines and sines come in a table per token, made by
//! [`rope_table`].

pub(crate) mod cases;
mod gpu;
mod grad;
mod qkv;
mod table;

pub use grad::HeadNormRopeGrad;
pub use qkv::{KvValues, QkvRope};
pub use table::rope_table;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
};

/// Norm of each head, then its rotation.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadNormRope {
    /// Numbers in a head.
    pub width: usize,
    /// Added to the mean, inside the root.
    pub eps: f32,
}

impl Graph {
    /// Heads of `x` `[t, h·e]`, normed with the weight `[e]` and turned by the table `[t, e/2, 2]`: `[t, h, e]`.
    pub fn head_norm_rope(&mut self, x: Value, weight: Value, rope: Value, eps: f32) -> Value {
        let width = self.ty(weight).shape.len();
        self.apply(HeadNormRope { width, eps }, &[x, weight, rope])
    }

    /// Heads of `x` `[t, h·e]`, normed without a weight and not turned: `[t, h, e]`.
    pub fn head_norm(&mut self, x: Value, width: usize, eps: f32) -> Value {
        self.apply(HeadNormRope { width, eps }, &[x])
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
        vec![Type::f32([t, heads(inputs[0], self.width), self.width])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, mut y) = (call.f32(0), call.out(0));
        let turned = (call.inputs() > 1).then(|| (call.numbers(1), call.f32(2)));
        let per_token = call.input(0).shape.width();
        for (i, (x, y)) in
            x.chunks_exact(self.width).zip(y.chunks_exact_mut(self.width)).enumerate()
        {
            let token = i * self.width / per_token;
            let turned = turned.as_ref();
            let weight = turned.map(|(weight, _)| weight.as_slice());
            let rope = turned.map(|(_, rope)| &rope[token * self.width..][..self.width]);
            norm_turn(x, weight, rope, self.eps, y);
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
        let inputs: Vec<Value> =
            node.inputs[..1].iter().chain(&dy[0]).chain(&node.inputs[1..]).copied().collect();
        let op = HeadNormRopeGrad { width: self.width, eps: self.eps };
        let dx = (inputs.len() > node.inputs.len()).then(|| graph.apply(op, &inputs));
        // Weights are frozen and tables are constants.
        std::iter::once(dx).chain(node.inputs[1..].iter().map(|_| None)).collect()
    }
}

/// One head: the norm, then each pair `(i, i + half)` turned by its cosine and sine.
fn norm_turn(x: &[f32], weight: Option<&[f32]>, rope: Option<&[f32]>, eps: f32, y: &mut [f32]) {
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

/// How many heads a row of `x` holds.
fn heads(x: &Type, width: usize) -> usize {
    assert!(width.is_multiple_of(4), "heads of {width}: kernels take multiples of four");
    assert!(x.shape.width().is_multiple_of(width), "head_norm_rope: {x} in heads of {width}");
    x.shape.width() / width
}

fn assert_table(rope: &Type, t: usize, width: usize) {
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
