//! The trait of operations.

use std::{fmt::Debug, rc::Rc};

use super::{Graph, Node, Step, Type, Value};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, Edge, GpuCall},
};

/// An operation: a CPU reference that defines it, GPU kernels, a gradient.
pub trait Op: Debug + 'static {
    /// The name of its folder.
    fn name(&self) -> &'static str;

    /// The types of its results.
    ///
    /// # Panics
    /// If the inputs do not fit: a bug in a model's graph.
    fn infer(&self, inputs: &[&Type]) -> Vec<Type>;

    /// Indices of the inputs that are states it writes.
    fn writes(&self) -> &'static [usize] {
        &[]
    }

    /// The CPU reference in f32, which defines the operation: obvious rather than fast.
    fn cpu(&self, call: &CpuCall<'_>);

    /// The dispatches, in order.
    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch>;

    /// The form in which its kernels store result `i` for its only reader. Lowering calls it twice: with [`Edge::RowMajor`], for which it may
    /// return partials instead, then with the layout that the reader prefers, which it returns if it can store it.
    fn stores(&self, call: &GpuCall<'_>, i: usize, preferred: Edge) -> Edge {
        let _ = (call, i, preferred);
        Edge::RowMajor
    }

    /// The form in which its kernels prefer to read the first input, given the producer's offer: as offered, another layout, or row-major.
    fn reads(&self, call: &GpuCall<'_>, offered: Edge) -> Edge {
        let _ = (call, offered);
        Edge::RowMajor
    }

    /// The index of the input that is the transposed LoRA up-projection (B) which it adds to its second input, a branch.
    fn branch_lora(&self) -> Option<usize> {
        None
    }

    /// Whether it adds one more input, a base of its result's type, to its only result; it has `inputs` inputs without it.
    fn takes_base(&self, inputs: usize) -> bool {
        let _ = inputs;
        false
    }

    /// The operation without results that adds its only result to one more input, a state, if there is one; it has `inputs` inputs.
    fn accumulating(&self, inputs: usize) -> Option<Rc<dyn Op>> {
        let _ = inputs;
        None
    }

    /// Number of multiplications and additions.
    fn operations(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        let _ = inputs;
        outputs.iter().map(|ty| ty.shape.len() as u64).sum()
    }

    /// Bytes of its inputs that a run reads: all, unless it selects rows.
    fn bytes_read(&self, inputs: &[&Type], step: &Step) -> u64 {
        let _ = step;
        inputs.iter().map(|ty| ty.bytes()).sum()
    }

    /// One gradient per input, or `None` if none flows; `dy` has one entry per result.
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
    /// The values it reads.
    pub inputs: Vec<Value>,
    /// The values it computes.
    pub outputs: Vec<Value>,
}

impl From<&Node> for NodeValues {
    fn from(node: &Node) -> Self {
        Self { inputs: node.inputs.clone(), outputs: node.outputs.clone() }
    }
}
