//! Up-projections of several LoRA pairs, each added to its own columns of one value: the output of a stack of weights.

use super::Adapter;
use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall},
    graph::{Graph, NodeValues, Op, Type, Value},
    ops::{
        matmul::{
            Matmul,
            dense::{
                Form,
                gpu::{Operands, update_columns},
            },
        },
        split_k::Base,
    },
};

/// `y[:, columns of i] = base[:, columns of i] + s_i · z_i · B_iᵀ`. Inputs: the base, then `z` and `B` of each pair, whose columns follow
/// each other.
#[derive(Debug, Clone, PartialEq)]
struct LoraUpColumns {
    /// The scale of each pair.
    scales: Vec<f32>,
}

/// A pair of [`LoraUpColumns`]: indices of `z` and `B` among the inputs, scale, first column and number of columns.
struct Pair {
    z: usize,
    b: usize,
    scale: f32,
    first: usize,
    columns: usize,
}

impl Graph {
    /// Adds `s · B z` of each pair to the columns of `base` `[t, Σ out]` that are its weight's output.
    pub fn lora_up_columns(&mut self, base: Value, pairs: &[(Value, Adapter)]) -> Value {
        let scales = pairs.iter().map(|(_, adapter)| adapter.scale).collect();
        let factors = pairs.iter().flat_map(|(z, adapter)| [*z, adapter.b]);
        let inputs: Vec<Value> = [base].into_iter().chain(factors).collect();
        self.apply(LoraUpColumns { scales }, &inputs)
    }
}

impl LoraUpColumns {
    /// The pairs, given the number of rows of an input.
    fn pairs(&self, rows: impl Fn(usize) -> usize) -> Vec<Pair> {
        let mut first = 0;
        let pair = |(i, scale): (usize, &f32)| {
            let (z, b) = (1 + 2 * i, 2 + 2 * i);
            let columns = rows(b);
            first += columns;
            Pair { z, b, scale: *scale, first: first - columns, columns }
        };
        self.scales.iter().enumerate().map(pair).collect()
    }
}

impl Op for LoraUpColumns {
    fn name(&self) -> &'static str {
        "lora"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let base = inputs[0];
        let pairs = self.pairs(|i| inputs[i].shape.rows());
        for Pair { z, b, .. } in &pairs {
            let (z, b) = (&inputs[*z].shape, &inputs[*b].shape);
            let fits = z.rows() == base.shape.rows() && z.width() == b.width();
            assert!(fits, "lora: {z} with {b} onto {base}");
        }
        let columns: usize = pairs.iter().map(|pair| pair.columns).sum();
        assert_eq!(columns, base.shape.width(), "lora: pairs must cover the columns of {base}");
        vec![base.clone()]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let mut y = call.out(0);
        y.copy_from_slice(&call.f32(0));
        let width = call.input(0).shape.width();
        for Pair { z, b, scale, first, columns } in self.pairs(|i| call.input(i).shape.rows()) {
            let rank = call.input(z).shape.width();
            let (z, b) = (call.f32(z), call.f32(b));
            for (y, z) in y.chunks_exact_mut(width).zip(z.chunks_exact(rank)) {
                for (y, b) in y[first..first + columns].iter_mut().zip(b.chunks_exact(rank)) {
                    *y += scale * z.iter().zip(b).map(|(z, b)| z * b).sum::<f32>();
                }
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let [t, width] = [call.input(0).shape.rows(), call.input(0).shape.width()];
        let of_pair = |Pair { z, b, scale, first, columns }| {
            let operands = Operands {
                a: BufferRef::Input(z),
                b: BufferRef::Input(b),
                base: Base::Added(BufferRef::Input(0)),
                output: BufferRef::Output(0),
            };
            let sizes = [t, call.input(z).shape.width()];
            update_columns(sizes, (first, columns, width), scale, &operands, call.facts)
        };
        self.pairs(|i| call.input(i).shape.rows()).into_iter().flat_map(of_pair).collect()
    }

    fn operations(&self, inputs: &[&Type], _: &[&Type]) -> u64 {
        let of_pair = |Pair { z, columns, .. }: Pair| 2 * (inputs[z].shape.len() * columns) as u64;
        self.pairs(|i| inputs[i].shape.rows()).into_iter().map(of_pair).sum()
    }

    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let Some(dy) = dy[0] else { return vec![None; node.inputs.len()] };
        let pairs = self.pairs(|i| graph.ty(node.inputs[i]).shape.rows());
        let mut flows = vec![Some(dy)];
        for Pair { z, b, scale, first, columns } in pairs {
            let mut matmul = |form, with| {
                let op = Matmul { form, scale, columns: Some((first, columns)) };
                Some(graph.matmul(op, dy, with, None))
            };
            flows.extend([matmul(Form::Nn, node.inputs[b]), matmul(Form::Tn, node.inputs[z])]);
        }
        flows
    }
}
