//! Lowering: one walk over a graph decides the layout of each edge; dispatches are built from these annotations.
//!
//! An edge is annotated if a single operation reads the value, as its first input: the producer offers a form (row-major or partials), the
//! reader replies with the form it prefers, and the producer stores that if it can. Annotations depend on earlier edges only.

use std::{collections::HashMap, fmt};

use super::{DeviceFacts, Dispatch, F16Columns, GpuCall, Layout, SplitKvPartials, barriers};
use crate::graph::{Graph, Value};

/// The form in which activations are passed from a producer to its only reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Row-major.
    RowMajor,
    /// In the order in which the reader's weight format consumes them, possibly quantised.
    Permuted(Layout),
    /// As f16 columns for the matrix units of the reader's GEMM.
    F16Columns(F16Columns),
    /// As split-KV partials, which the reader combines.
    SplitKv(SplitKvPartials),
}

impl Edge {
    /// The layout, if it is permuted.
    pub(crate) fn layout(self) -> Option<Layout> {
        if let Self::Permuted(layout) = self { Some(layout) } else { None }
    }

    /// The f16 columns, if any.
    pub(crate) fn f16_columns(self) -> Option<F16Columns> {
        if let Self::F16Columns(columns) = self { Some(columns) } else { None }
    }

    /// The split-KV partials, if any.
    pub(crate) fn partials(self) -> Option<SplitKvPartials> {
        if let Self::SplitKv(partials) = self { Some(partials) } else { None }
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RowMajor => f.write_str("row-major"),
            Self::Permuted(Layout { span, units, int8 }) => {
                let form = if *int8 { "int8 pairs" } else { "floats" };
                write!(f, "permuted {form}, {units} units by {span} columns")
            }
            Self::F16Columns(F16Columns { span, units }) => {
                write!(f, "f16 columns, {units} units by {span} columns")
            }
            Self::SplitKv(partials) => {
                write!(f, "split-KV partials, {} splits", partials.splits)?;
                match partials.lora {
                    Some(lora) => write!(f, ", LoRA rank {}", lora.rows),
                    None => Ok(()),
                }
            }
        }
    }
}

/// A graph with its edges annotated for a device.
#[derive(Debug)]
pub(crate) struct Lowered<'a> {
    pub(super) facts: &'a DeviceFacts,
    pub(super) graph: &'a Graph,
    /// The edges that are not row-major.
    edges: HashMap<Value, Edge>,
    /// For each value read by a single node and not by the host: the node, and which of its inputs the value is.
    readers: HashMap<Value, Option<(usize, usize)>>,
}

impl<'a> Lowered<'a> {
    /// Annotates the edges of a graph.
    pub(crate) fn new(facts: &'a DeviceFacts, graph: &'a Graph) -> Self {
        Self::inside(facts, graph, &[], HashMap::new())
    }

    /// Annotates the edges of the graph of an operation, given those of its inputs and results; `results` may be read outside, too.
    pub(crate) fn inside(
        facts: &'a DeviceFacts,
        graph: &'a Graph,
        results: &[Value],
        edges: HashMap<Value, Edge>,
    ) -> Self {
        let mut readers = only_readers(graph);
        readers.retain(|value, _| !results.contains(value));
        let mut lowered = Self { facts, graph, edges, readers };
        for (index, node) in graph.nodes().iter().enumerate() {
            for (i, output) in node.outputs.iter().enumerate() {
                let edge = lowered.annotation(index, i);
                if edge != Edge::RowMajor {
                    lowered.edges.insert(*output, edge);
                }
            }
        }
        lowered
    }

    fn annotation(&self, index: usize, i: usize) -> Edge {
        let producer = GpuCall::new(self, index);
        let Some(reader) = producer.only_reader(i) else { return Edge::RowMajor };
        let offered = match producer.op().stores(&producer, i, Edge::RowMajor) {
            // Partials are in scratch memory, which every operation uses: no operation may come between.
            Edge::SplitKv(_) if !reader.follows(&producer) => Edge::RowMajor,
            offered => offered,
        };
        match reader.op().reads(&reader, offered) {
            preferred @ (Edge::Permuted(_) | Edge::F16Columns(_)) => {
                producer.op().stores(&producer, i, preferred)
            }
            edge => edge,
        }
    }

    /// The edge of a value.
    pub(crate) fn edge(&self, value: Value) -> Edge {
        self.edges.get(&value).copied().unwrap_or(Edge::RowMajor)
    }

    /// The only node that reads a value, and as which input.
    pub(crate) fn only_reader(&self, value: Value) -> Option<(usize, usize)> {
        self.readers.get(&value).copied().flatten()
    }

    /// The dispatches of a node.
    pub(crate) fn node_dispatches(&self, index: usize) -> Vec<Dispatch> {
        self.graph.nodes()[index].op.gpu(&GpuCall::new(self, index))
    }

    /// All dispatches, in order, with the indices of their nodes.
    pub(crate) fn dispatches(&self) -> Vec<(usize, Dispatch)> {
        let nodes = 0..self.graph.nodes().len();
        let of_node =
            |index| self.node_dispatches(index).into_iter().map(move |dispatch| (index, dispatch));
        let mut dispatches: Vec<_> = nodes.flat_map(of_node).collect();
        barriers::share(self.facts, self.graph, &mut dispatches);
        dispatches
    }
}

fn only_readers(graph: &Graph) -> HashMap<Value, Option<(usize, usize)>> {
    let mut readers = HashMap::new();
    for (index, node) in graph.nodes().iter().enumerate() {
        for (i, input) in node.inputs.iter().enumerate() {
            let known = readers.entry(*input).or_insert(Some((index, i)));
            // If a node reads a value twice, the first of the two inputs counts.
            if known.is_some_and(|(reader, _)| reader != index) {
                *known = None;
            }
        }
    }
    readers.retain(|value, _| !graph.info(*value).kept);
    readers
}
