//! What an operation sees when it builds its dispatches.

use super::{DeviceFacts, Dispatch, barriers, slabs::Slabs};
use crate::graph::{Element, Graph, Node, Op, Origin, Type};

/// An operation's inputs, results and device; facts only, so that kernel choice is a pure function.
#[derive(Debug)]
pub struct GpuCall<'a> {
    /// What the device offers.
    pub facts: &'a DeviceFacts,
    graph: &'a Graph,
    node: &'a Node,
}

impl<'a> GpuCall<'a> {
    /// The call for one node of a graph.
    pub fn new(facts: &'a DeviceFacts, graph: &'a Graph, node: &'a Node) -> Self {
        Self { facts, graph, node }
    }

    /// All dispatches of a graph, in order, with the numbers of their nodes.
    pub(crate) fn dispatches(
        facts: &DeviceFacts,
        graph: &Graph,
    ) -> impl Iterator<Item = (usize, Dispatch)> {
        let mut dispatches = Vec::new();
        for (index, node) in graph.nodes().iter().enumerate() {
            let of_node = node.op.gpu(&GpuCall::new(facts, graph, node));
            dispatches.extend(of_node.into_iter().map(|dispatch| (index, dispatch)));
        }
        barriers::share(facts, graph, &mut dispatches);
        dispatches.into_iter()
    }

    /// Whether each token comes out as in a graph of its own, to the last bit.
    pub fn is_batch_invariant(&self) -> bool {
        self.graph.is_batch_invariant()
    }

    /// The operation.
    pub(super) fn op(&self) -> &'a dyn Op {
        &*self.node.op
    }

    /// The call of the producer of input `i`, if a node of the graph is, and which of its results that is.
    pub(super) fn maker(&self, i: usize) -> Option<(Self, usize)> {
        let value = self.node.inputs[i];
        let Origin::Node(node) = self.graph.info(value).origin else { return None };
        let node = &self.graph.nodes()[node];
        let result = node.outputs.iter().position(|output| *output == value)?;
        Some((Self::new(self.facts, self.graph, node), result))
    }

    /// The call of the only one that reads result `i`, as its first input; `None` if there are others, or if the host may read it.
    pub(super) fn only_reader(&self, i: usize) -> Option<Self> {
        self.only_reader_at(i, 0)
    }

    /// The same, as its second input: where a branch joins the stream.
    pub(crate) fn only_branch_reader(&self, i: usize) -> Option<Self> {
        self.only_reader_at(i, 1)
    }

    /// Which input is the LoRA up-projection, transposed, that it adds to the branch.
    pub(crate) fn branch_lora(&self) -> Option<usize> {
        self.op().branch_lora()
    }

    /// Whether the producer of the branch has added that already.
    pub(crate) fn branch_has_lora(&self) -> bool {
        let maker = self.maker(1);
        maker.is_some_and(|(maker, _)| {
            maker.input_partials().is_some_and(|partials| partials.lora.is_some())
        })
    }

    fn only_reader_at(&self, i: usize, input: usize) -> Option<Self> {
        let value = self.node.outputs[i];
        if self.graph.info(value).kept {
            return None;
        }
        let mut readers = self.graph.nodes().iter().filter(|node| node.inputs.contains(&value));
        let (Some(reader), None) = (readers.next(), readers.next()) else { return None };
        let there = reader.inputs.iter().position(|other| *other == value) == Some(input);
        there.then(|| Self::new(self.facts, self.graph, reader))
    }

    /// Whether this one comes right after another one of the same graph.
    pub(super) fn follows(&self, other: &Self) -> bool {
        let place = |node| self.graph.nodes().iter().position(|one| std::ptr::eq(one, node));
        place(other.node).map(|at| at + 1) == place(self.node)
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
