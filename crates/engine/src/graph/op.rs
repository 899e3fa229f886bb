//! What an operation must say about itself.

use std::fmt::Debug;

use super::{Graph, Node, Step, Type, Value};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, Edge, GpuCall},
};

/// An operation: a definition, a reference on the CPU, kernels on the GPU, a gradient.
pub trait Op: Debug + 'static {
    /// The name of its folder.
    fn name(&self) -> &'static str;

    /// The types of its results.
    ///
    /// # Panics
    /// If the inputs do not fit: a model's graph is wrong then.
    fn infer(&self, inputs: &[&Type]) -> Vec<Type>;

    /// Which inputs are states it writes.
    fn writes(&self) -> &'static [usize] {
        &[]
    }

    /// The definition, in f32: obvious rather than fast.
    fn cpu(&self, call: &CpuCall<'_>);

    /// The kernels, their parameters and their grids, in order.
    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch>;

    /// How its kernels store result `i` for its only reader. The lowering pass asks twice: with [`Edge::RowMajor`], where it may offer
    /// partials instead, then with the layout that the reader prefers, which it stores as far as it can.
    fn stores(&self, call: &GpuCall<'_>, i: usize, preferred: Edge) -> Edge {
        let _ = (call, i, preferred);
        Edge::RowMajor
    }

    /// How its kernels prefer to read the first input where the producer offers this: as offered, in another layout, or row-major.
    fn reads(&self, call: &GpuCall<'_>, offered: Edge) -> Edge {
        let _ = (call, offered);
        Edge::RowMajor
    }

    /// Which input is the LoRA up-projection, transposed, that it adds to its second input, a branch.
    fn branch_lora(&self) -> Option<usize> {
        None
    }

    /// Multiplications and additions it takes.
    fn operations(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        let _ = inputs;
        outputs.iter().map(|ty| ty.shape.len() as u64).sum()
    }

    /// Bytes of its inputs that a run reads: all, unless it picks some.
    fn bytes_read(&self, inputs: &[&Type], step: &Step) -> u64 {
        let _ = step;
        inputs.iter().map(|ty| ty.bytes()).sum()
    }

    /// One gradient per input, or `None` where none flows; `dy` has one entry per result.
    ///
    /// # Panics
    /// If the operation has no gradient rule, which is the default.
    fn grad(
        &self,
        graph: &mut Graph,
        node: &NodeValues,
        dy: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let _ = (graph, node, dy);
        panic!("{} has no gradient rule", self.name())
    }
}

/// The values of a node, for gradient rules, which append to the graph the node is in.
#[derive(Debug, Clone)]
pub struct NodeValues {
    /// What the node reads.
    pub inputs: Vec<Value>,
    /// What it computes.
    pub outputs: Vec<Value>,
}

impl From<&Node> for NodeValues {
    fn from(node: &Node) -> Self {
        Self { inputs: node.inputs.clone(), outputs: node.outputs.clone() }
    }
}
