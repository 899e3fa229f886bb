//! What an operation sees when it builds its dispatches.

use super::{DeviceFacts, Dispatch, Edge, lower::Lowered, slabs::Slabs};
use crate::graph::{Element, Graph, Node, Op, Origin, Type};

/// An operation's inputs, results and device; facts only, so that kernel selection is a pure function.
#[derive(Debug)]
pub struct GpuCall<'a> {
    /// What the device offers.
    pub facts: &'a DeviceFacts,
    lowered: &'a Lowered<'a>,
    graph: &'a Graph,
    node: &'a Node,
    index: usize,
}

impl<'a> GpuCall<'a> {
    /// The call for one node of a graph, by its number.
    pub(crate) fn new(lowered: &'a Lowered<'a>, index: usize) -> Self {
        let Lowered { facts, graph, .. } = lowered;
        Self { facts, lowered, graph, node: &graph.nodes()[index], index }
    }

    /// All dispatches of a graph, in order, with the numbers of their nodes.
    pub(crate) fn dispatches(
        facts: &DeviceFacts,
        graph: &Graph,
    ) -> impl Iterator<Item = (usize, Dispatch)> {
        Lowered::new(facts, graph).dispatches().into_iter()
    }

    /// Whether each token comes out as in a graph of its own, to the last bit.
    pub fn is_batch_invariant(&self) -> bool {
        self.graph.is_batch_invariant()
    }

    /// The operation.
    pub(super) fn op(&self) -> &'a dyn Op {
        &*self.node.op
    }

    /// How the first input is carried.
    pub(crate) fn input_edge(&self) -> Edge {
        self.lowered.edge(self.node.inputs[0])
    }

    /// How result `i` is carried.
    pub(crate) fn result_edge(&self, i: usize) -> Edge {
        self.lowered.edge(self.node.outputs[i])
    }

    /// The call of the only reader of result `i`, if it reads it as its first input; `None` if the host may read it too.
    pub(super) fn only_reader(&self, i: usize) -> Option<Self> {
        self.only_reader_at(i, 0)
    }

    /// The same, as its second input: where a branch joins the stream.
    pub(crate) fn only_branch_reader(&self, i: usize) -> Option<Self> {
        self.only_reader_at(i, 1)
    }

    fn only_reader_at(&self, i: usize, input: usize) -> Option<Self> {
        let (reader, place) = self.lowered.only_reader(self.node.outputs[i])?;
        (place == input).then(|| Self::new(self.lowered, reader))
    }

    /// Which input is the LoRA up-projection, transposed, that it adds to the branch.
    pub(crate) fn branch_lora(&self) -> Option<usize> {
        self.op().branch_lora()
    }

    /// Whether the producer of the branch has added that already.
    pub(crate) fn branch_has_lora(&self) -> bool {
        let Origin::Node(producer) = self.graph.info(self.node.inputs[1]).origin else {
            return false;
        };
        let edge = Self::new(self.lowered, producer).input_edge();
        edge.partials().is_some_and(|partials| partials.lora.is_some())
    }

    /// Whether this one comes right after another one of the same graph.
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

    /// How many inputs there are.
    pub fn inputs(&self) -> usize {
        self.node.inputs.len()
    }

    /// The slabs of the weight at input `i`.
    ///
    /// # Panics
    /// If it is no weight.
    pub fn slabs(&self, i: usize) -> Slabs {
        let ty = self.input(i);
        match ty.element {
            Element::Weight(dtype) => Slabs::new(dtype, &ty.shape, self.facts),
            other => panic!("input {i} is {other:?}, not a weight"),
        }
    }
}
