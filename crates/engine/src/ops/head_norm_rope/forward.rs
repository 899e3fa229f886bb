//! The op: head norm and RoPE.

use super::{
    gpu,
    grad::HeadNormRopeGrad,
    reference::assert_table,
    types::{HeadForm, HeadNormRope},
};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
    ops::Slice,
};

impl Graph {
    /// Heads of `x` `[t, h·e]`, normed with the weight `[e]` and rotated by the table `[t, e/2, 2]`: `[t, h, e]`. If the form has no norm, the
    /// weight is the table again.
    pub fn head_norm_rope(
        &mut self,
        x: impl Into<Slice>,
        weight: Value,
        rope: Value,
        form: impl Into<HeadForm>,
    ) -> Value {
        self.rotated(x.into(), weight, rope, (form.into(), 1))
    }

    /// As [`Graph::head_norm_rope`] with 2-D RoPE: the first half of the table and of each head belongs to one axis of the position.
    pub fn head_norm_rope_2d(
        &mut self,
        x: impl Into<Slice>,
        weight: Value,
        rope: Value,
        eps: f32,
    ) -> Value {
        self.rotated(x.into(), weight, rope, (eps.into(), 2))
    }

    fn rotated(
        &mut self,
        x: Slice,
        weight: Value,
        rope: Value,
        (form, axes): (HeadForm, usize),
    ) -> Value {
        let (width, columns) =
            (self.ty(rope).shape.len() / self.ty(x.value).shape.rows(), x.columns(self));
        self.apply(HeadNormRope { width, form, columns, axes }, &[x.value, weight, rope])
    }

    /// Heads of `x` `[t, h·e]`, normed without a weight if the form says so, and not rotated: `[t, h, e]`.
    pub fn head_norm(
        &mut self,
        x: impl Into<Slice>,
        width: usize,
        form: impl Into<HeadForm>,
    ) -> Value {
        let x = x.into();
        let columns = x.columns(self);
        let form = form.into();
        self.apply(HeadNormRope { width, form, columns, axes: 1 }, &[x.value])
    }
}

impl HeadNormRope {
    /// The head width must be a multiple of this.
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
            let fits = !self.form.qk_norm || weight.shape.len() == self.width;
            assert!(fits, "head_norm_rope: weight {weight}");
        }
        vec![Type::f32([t, self.columns.heads(inputs[0], self.width), self.width])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, mut y) = (call.f32(0), call.out(0));
        let rotated = (call.inputs() > 1).then(|| (call.decoded(1), call.f32(2)));
        let (width, rotated) = (self.width, rotated.as_ref());
        for (token, y) in y.chunks_exact_mut(self.columns.width).enumerate() {
            let x = self.columns.of(&x, call.input(0), token);
            for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
                match rotated {
                    Some((weight, rope)) => {
                        let rope = &rope[token * width..][..width];
                        self.form.rotated(x, weight, rope, self.axes, y);
                    }
                    None => self.form.value(x, y),
                }
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
        let op = HeadNormRopeGrad { width: self.width, form: self.form };
        let dx = (inputs.len() > node.inputs.len()).then(|| graph.apply(op, &inputs));
        // Weights are frozen and tables are constants.
        std::iter::once(dx).chain(node.inputs[1..].iter().map(|_| None)).collect()
    }
}
