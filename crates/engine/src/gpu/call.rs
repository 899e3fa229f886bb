//! What an operation sees when it is asked for its kernels.

use super::{DeviceFacts, Dispatch, layout::Slabs};
use crate::graph::{Element, Graph, Node, Type};

/// An operation's inputs, results and device; facts only, so that kernel choice is a pure function.
#[derive(Debug)]
pub struct GpuCall<'a> {
    /// What the device offers.
    pub facts: &'a DeviceFacts,
    graph: &'a Graph,
    node: &'a Node,
}

impl<'a> GpuCall<'a> {
    /// The call for one node of a list.
    pub fn new(facts: &'a DeviceFacts, graph: &'a Graph, node: &'a Node) -> Self {
        Self { facts, graph, node }
    }

    /// All launches of a list, in order, with the numbers of their nodes.
    pub(crate) fn dispatches(
        facts: &DeviceFacts,
        graph: &Graph,
    ) -> impl Iterator<Item = (usize, Dispatch)> {
        let nodes = graph.nodes().iter().enumerate();
        nodes.flat_map(move |(index, node)| {
            let launches = node.op.gpu(&GpuCall::new(facts, graph, node)).into_iter();
            launches.map(move |dispatch| (index, dispatch))
        })
    }

    /// Whether each token is computed as in a run of its own.
    pub fn tokens_apart(&self) -> bool {
        self.graph.tokens_apart()
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

    /// How the weight at input `i` lies in memory.
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
