//! What an operation must say about itself.

use std::fmt::Debug;

use super::{Graph, Node, Step, Type, Value};
use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall, Met, Order, SplitKvPartials},
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

    /// The order its kernels want the first input in, where they can have another than row by row.
    fn wants_order(&self, call: &GpuCall<'_>) -> Option<Order> {
        let _ = call;
        None
    }

    /// The order its kernels write result `i` in where its only reader wants this one: that, the same of floats, or none.
    fn lays(&self, call: &GpuCall<'_>, i: usize, order: Order) -> Option<Order> {
        let _ = (call, i, order);
        None
    }

    /// What its kernels can leave of result `i` where its only reader combines that itself.
    fn leaves_parts(&self, call: &GpuCall<'_>, i: usize) -> Option<SplitKvPartials> {
        let _ = (call, i);
        None
    }

    /// Whether its kernels can take the first input so.
    fn takes_parts(&self, call: &GpuCall<'_>, parts: SplitKvPartials) -> bool {
        let _ = (call, parts);
        false
    }

    /// The factor that what leaves such parts shall meet them with: then the operation has a pair of its own that it adds to its result,
    /// instead of what reads that as a branch.
    fn met(&self, call: &GpuCall<'_>, parts: SplitKvPartials) -> Option<Met> {
        let _ = (call, parts);
        None
    }

    /// Which input is the second factor, turned, of what an adapter adds to the second input, a branch.
    fn second_factor(&self) -> Option<usize> {
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
    /// What it makes.
    pub outputs: Vec<Value>,
}

impl From<&Node> for NodeValues {
    fn from(node: &Node) -> Self {
        Self { inputs: node.inputs.clone(), outputs: node.outputs.clone() }
    }
}
