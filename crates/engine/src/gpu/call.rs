//! The context in which an operation builds its dispatches.

use super::{DeviceFacts, Dispatch, Edge, lower::Lowered, slabs::Slabs};
use crate::graph::{Element, Graph, Node, Op, Origin, Type};

/// An operation's inputs, results and device facts. There is no device in it, so that kernel selection is a pure function.
#[derive(Debug)]
pub struct GpuCall<'a> {
    /// Facts of the device.
    pub facts: &'a DeviceFacts,
    lowered: &'a Lowered<'a>,
    graph: &'a Graph,
    node: &'a Node,
    index: usize,
}

impl<'a> GpuCall<'a> {
    /// The call for node `index` of a graph.
    pub(crate) fn new(lowered: &'a Lowered<'a>, index: usize) -> Self {
        let Lowered { facts, graph, .. } = lowered;
        Self { facts, lowered, graph, node: &graph.nodes()[index], index }
    }

    /// All dispatches of a graph, in order, with the indices of their nodes.
    pub(crate) fn dispatches(
        facts: &DeviceFacts,
        graph: &Graph,
    ) -> impl Iterator<Item = (usize, Dispatch)> {
        Lowered::new(facts, graph).dispatches().into_iter()
    }

    /// Whether each token's results must be bit-identical to those of a graph with that token alone.
    pub fn is_batch_invariant(&self) -> bool {
        self.graph.is_batch_invariant()
    }

    /// The operation.
    pub(crate) fn op(&self) -> &'a dyn Op {
        &*self.node.op
    }

    /// The edge of the first input.
    pub(crate) fn input_edge(&self) -> Edge {
        self.lowered.edge(self.node.inputs[0])
    }

    /// The edge of result `i`.
    pub(crate) fn result_edge(&self, i: usize) -> Edge {
        self.lowered.edge(self.node.outputs[i])
    }

    /// The call of the only reader of result `i`, if it reads it as its first input; `None` if the host may read it too.
    pub(super) fn only_reader(&self, i: usize) -> Option<Self> {
        self.only_reader_at(i, 0)
    }

    /// The call of the only reader of result `i`, if it reads it as its second input: a branch added to the residual stream.
    pub(crate) fn only_branch_reader(&self, i: usize) -> Option<Self> {
        self.only_reader_at(i, 1)
    }

    fn only_reader_at(&self, i: usize, input: usize) -> Option<Self> {
        let (reader, read_as) = self.lowered.only_reader(self.node.outputs[i])?;
        (read_as == input).then(|| Self::new(self.lowered, reader))
    }

    /// The index of the input that is the transposed LoRA up-projection (B) which the operation adds to its branch.
    pub(crate) fn branch_lora(&self) -> Option<usize> {
        self.op().branch_lora()
    }

    /// Whether the branch's producer has already added that LoRA.
    pub(crate) fn branch_has_lora(&self) -> bool {
        let Origin::Node(producer) = self.graph.info(self.node.inputs[1]).origin else {
            return false;
        };
        let edge = Self::new(self.lowered, producer).input_edge();
        edge.partials().is_some_and(|partials| partials.lora.is_some())
    }

    /// Whether this node comes right after `other`.
    pub(super) fn follows(&self, other: &Self) -> bool {
        other.index + 1 == self.index
    }

    /// Type of input `i`.
    pub fn input(&self, i: usize) -> &'a Type {
        self.graph.ty(self.node.inputs[i])
    }

    /// Type of result `i`.
    pub fn output(&self, i: usize) -> &'a Type {
        self.graph.ty(self.node.outputs[i])
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.node.inputs.len()
    }

    /// The slabs of the weight at input `i`.
    ///
    /// # Panics
    /// If the input is not a weight.
    pub fn slabs(&self, i: usize) -> Slabs {
        let ty = self.input(i);
        match ty.element {
            Element::Weight(dtype) => Slabs::new(dtype, &ty.shape, self.facts),
            other => panic!("input {i} is {other:?}, not a weight"),
        }
    }
}
