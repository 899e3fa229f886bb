//! `y[t, h, :] = rotate(x[t, h, :] · (mean(x[t, h, :]²) + eps)^(-1/2) · w)`: the RMS norm of each head, then RoPE.
//!
//! The rotation takes element `i` of a head with element `i + width / 2`; 2-D RoPE does the same in each half of
//! a head, with one axis of the position for each half. Cosines and sines come in a table per token, made by [`rope_table`].

pub(crate) mod cases;
pub(crate) mod gpu;
mod grad;
mod qkv;
mod table;

pub use grad::HeadNormRopeGrad;
pub(crate) use qkv::store_heads;
pub use qkv::{KvStoreInputs, QkvRope};
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
    /// The columns of the heads.
    pub columns: Columns,
    /// Axes of a position (2 for 2-D RoPE): each rotates its part of a head.
    pub axes: usize,
}

impl Graph {
    /// Heads of `x` `[t, h·e]`, normed with the weight `[e]` and rotated by the table `[t, e/2, 2]`: `[t, h, e]`.
    pub fn head_norm_rope(
        &mut self,
        x: impl Into<Slice>,
        weight: Value,
        rope: Value,
        eps: f32,
    ) -> Value {
        self.rotated(x.into(), weight, rope, (eps, 1))
    }

    /// As [`Graph::head_norm_rope`] with 2-D RoPE: the first half of the table and of each head belongs to one axis of the position.
    pub fn head_norm_rope_2d(
        &mut self,
        x: impl Into<Slice>,
        weight: Value,
        rope: Value,
        eps: f32,
    ) -> Value {
        self.rotated(x.into(), weight, rope, (eps, 2))
    }

    fn rotated(
        &mut self,
        x: Slice,
        weight: Value,
        rope: Value,
        (eps, axes): (f32, usize),
    ) -> Value {
        let (width, columns) = (self.ty(weight).shape.len(), x.columns(self));
        self.apply(HeadNormRope { width, eps, columns, axes }, &[x.value, weight, rope])
    }

    /// Heads of `x` `[t, h·e]`, normed without a weight and not rotated: `[t, h, e]`.
    pub fn head_norm(&mut self, x: impl Into<Slice>, width: usize, eps: f32) -> Value {
        let x = x.into();
        let columns = x.columns(self);
        self.apply(HeadNormRope { width, eps, columns, axes: 1 }, &[x.value])
    }
}

impl HeadNormRope {
    /// Kernels take heads whose width is a multiple of this.
    pub const WIDTH_STEP: usize = 4;
}

impl Op for HeadNormRope {
    fn name(&self) -> &'static str {
        "head_norm_rope"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let t = inputs[0].shape.rows();
        assert!(
            self.width.is_multiple_of(2 * self.axes),
            "head_norm_rope: heads of {}",
            self.width
        );
        if let [_, weight, rope] = inputs {
            assert_table(rope, t, self.width);
            assert_eq!(weight.shape.len(), self.width, "head_norm_rope: weight {weight}");
        }
        vec![Type::f32([t, self.columns.heads(inputs[0], self.width), self.width])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, mut y) = (call.f32(0), call.out(0));
        let rotated = (call.inputs() > 1).then(|| (call.numbers(1), call.f32(2)));
        let (width, rotated) = (self.width, rotated.as_ref());
        let weight = rotated.map(|(weight, _)| weight.as_slice());
        for (token, y) in y.chunks_exact_mut(self.columns.width).enumerate() {
            let rope = rotated.map(|(_, rope)| &rope[token * width..][..width]);
            let x = self.columns.of(&x, call.input(0), token);
            for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
                norm_rope_pairs(x, weight, rope, (self.eps, width / 2 / self.axes), y);
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
        assert!(
            whole && self.axes == 1,
            "head_norm_rope: slices and 2-D RoPE have no gradient rule"
        );
        let inputs: Vec<Value> =
            node.inputs[..1].iter().chain(&dy[0]).chain(&node.inputs[1..]).copied().collect();
        let op = HeadNormRopeGrad { width: self.width, eps: self.eps };
        let dx = (inputs.len() > node.inputs.len()).then(|| graph.apply(op, &inputs));
        // Weights are frozen and tables are constants.
        std::iter::once(dx).chain(node.inputs[1..].iter().map(|_| None)).collect()
    }
}

/// One head: the norm, then each pair `(i, i + half)` rotated by its cosine and sine.
pub(crate) fn norm_rope(
    x: &[f32],
    weight: Option<&[f32]>,
    rope: Option<&[f32]>,
    eps: f32,
    y: &mut [f32],
) {
    norm_rope_pairs(x, weight, rope, (eps, x.len() / 2), y);
}

/// The same with another distance between the elements of a pair.
fn norm_rope_pairs(
    x: &[f32],
    weight: Option<&[f32]>,
    rope: Option<&[f32]>,
    (eps, stride): (f32, usize),
    y: &mut [f32],
) {
    let mean = x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32;
    let scale = 1.0 / (mean + eps).sqrt();
    let normed = |j: usize| x[j] * scale * weight.map_or(1.0, |w| w[j]);
    for i in 0..x.len() / 2 {
        let first = i / stride * 2 * stride + i % stride;
        let (a, b) = (normed(first), normed(first + stride));
        let (cos, sin) = rope.map_or((1.0, 0.0), |rope| (rope[2 * i], rope[2 * i + 1]));
        y[first] = a * cos - b * sin;
        y[first + stride] = a * sin + b * cos;
    }
}

pub(crate) fn assert_table(rope: &Type, t: usize, width: usize) {
    assert_eq!(rope.shape.dims(), [t, width / 2, 2], "the table of {t} tokens, heads of {width}");
}

#[cfg(test)]
mod tests {
    use super::norm_rope;

    #[test]
    fn pairs_are_half_a_head_apart_and_rotate_by_their_own_angles() {
        let (x, weight) = ([1.0, 2.0, 2.0, 4.0], [1.0, 1.0, 2.0, 1.0]);
        let mut y = [0.0; 4];
        // The first pair rotates by a right angle, the second not at all.
        norm_rope(&x, Some(&weight), Some(&[0.0, 1.0, 1.0, 0.0]), 0.0, &mut y);
        let want = [-1.6, 0.8, 0.4, 1.6];
        assert!(y.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{y:?}");
    }

    #[test]
    fn each_axis_of_2d_rope_rotates_its_half() {
        let mut y = [0.0; 4];
        // A right angle along the first axis, none along the second: pairs are neighbours in heads of four.
        super::norm_rope_pairs(&[1.0; 4], None, Some(&[0.0, 1.0, 1.0, 0.0]), (0.0, 1), &mut y);
        assert_eq!(y, [-1.0, 1.0, 1.0, 1.0]);
    }
}
