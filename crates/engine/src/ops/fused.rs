//! Fused operations in terms of simpler ones: their CPU reference, their gradient, and their dispatches where no fused kernel applies.

use std::collections::{HashMap, hash_map::Entry};

use crate::{
    cpu::{CpuCall, CpuPlan},
    gpu::{Bind, BufferRef, Dispatch, Edge, GpuCall, Lowered, value_bytes},
    graph::{Element, Graph, NodeValues, Origin, Type, Value, walk},
};

/// Appends the simpler operations to a graph, from the fused operation's inputs to its results.
pub(crate) type Expand<'a> = &'a dyn Fn(&mut Graph, &[Value]) -> Vec<Value>;

/// The simpler operations as a separate graph; inputs are named by their indices.
struct Expanded {
    graph: Graph,
    inputs: Vec<Value>,
    results: Vec<Value>,
}

impl Expanded {
    fn new<'a>(
        mut graph: Graph,
        types: impl Iterator<Item = &'a Type>,
        expand: Expand<'_>,
    ) -> Self {
        let input = |(i, ty): (usize, &Type)| match ty.element {
            Element::Weight(_) => graph.weight(i.to_string(), ty.clone()),
            _ => graph.input(i.to_string(), ty.clone()),
        };
        let inputs: Vec<Value> = types.enumerate().map(input).collect();
        let results = expand(&mut graph, &inputs);
        Self { graph, inputs, results }
    }

    fn of_call(call: &GpuCall<'_>, expand: Expand<'_>) -> Self {
        let graph =
            if call.is_batch_invariant() { Graph::new_batch_invariant() } else { Graph::new() };
        Self::new(graph, (0..call.inputs()).map(|i| call.input(i)), expand)
    }
}

/// Result types, by the simpler operations' shape rules.
pub(crate) fn infer(inputs: &[&Type], expand: Expand<'_>) -> Vec<Type> {
    let expanded = Expanded::new(Graph::new(), inputs.iter().copied(), expand);
    expanded.results.iter().map(|value| expanded.graph.ty(*value).clone()).collect()
}

/// Runs the simpler operations on the CPU, in the memory of the fused operation's inputs and results.
pub(crate) fn cpu(call: &CpuCall<'_>, expand: Expand<'_>) {
    let graph = if call.is_batch_invariant() { Graph::new_batch_invariant() } else { Graph::new() };
    let Expanded { graph, inputs, results } =
        Expanded::new(graph, (0..call.inputs()).map(|i| call.input(i)), expand);
    let memory = |(i, value): (usize, &Value)| (*value, call.input_memory(i));
    let mut given: HashMap<Value, _> = inputs.iter().enumerate().map(memory).collect();
    let mut copied = Vec::new();
    for (i, result) in results.iter().enumerate() {
        match given.entry(*result) {
            Entry::Vacant(entry) => {
                entry.insert(call.output_memory(i));
            }
            // A result that is an input, or the same as another result.
            Entry::Occupied(_) => copied.push((i, *result)),
        }
    }
    let plan = CpuPlan::with_memory(graph, &given);
    plan.run(call.step);
    for (i, result) in copied {
        call.out(i).copy_from_slice(&plan.read(result));
    }
}

/// The simpler operations' dispatches; intermediate values are in scratch buffers, after the operations' own.
pub(crate) fn gpu(call: &GpuCall<'_>, expand: Expand<'_>) -> Vec<Dispatch> {
    let expanded = Expanded::of_call(call, expand);
    let graph = &expanded.graph;
    let outer = |i: usize, value: &Value| (*value, call.result_edge(i));
    let mut edges: HashMap<Value, Edge> =
        expanded.results.iter().enumerate().map(|(i, value)| outer(i, value)).collect();
    edges.insert(expanded.inputs[0], call.input_edge());
    edges.retain(|_, edge| edge.f16_columns().is_some());
    let lowered = Lowered::inside(call.facts, graph, &expanded.results, edges);
    let dispatches: Vec<(usize, Dispatch)> = (0..graph.nodes().len())
        .flat_map(|node| {
            let dispatches = lowered.node_dispatches(node);
            dispatches.into_iter().map(move |dispatch| (node, dispatch))
        })
        .collect();
    let buffers = dispatches.iter().flat_map(|(_, dispatch)| &dispatch.bindings);
    let own = buffers.filter_map(|(Bind::Read(buffer) | Bind::Write(buffer))| match buffer {
        BufferRef::Scratch(index, _) => Some(index + 1),
        _ => None,
    });
    let intermediates = Intermediates { first: own.max().unwrap_or(0), indices: HashMap::new() };
    let mut map = Map { expanded: &expanded, intermediates };
    dispatches.into_iter().map(|(node, dispatch)| map.dispatch(node, dispatch)).collect()
}

/// The form in which the simpler operations prefer to read the first input: f16 columns or row-major.
pub(crate) fn reads(call: &GpuCall<'_>, expand: Expand<'_>) -> Edge {
    let expanded = Expanded::of_call(call, expand);
    let Expanded { graph, inputs, results } = &expanded;
    let lowered = Lowered::inside(call.facts, graph, results, HashMap::new());
    let Some((reader, 0)) = lowered.only_reader(inputs[0]) else { return Edge::RowMajor };
    let reader = GpuCall::new(&lowered, reader);
    only_f16_columns(reader.op().reads(&reader, Edge::RowMajor))
}

/// The form in which the simpler operations store result `i` if its reader prefers `preferred`: f16 columns or row-major.
pub(crate) fn stores(call: &GpuCall<'_>, i: usize, preferred: Edge, expand: Expand<'_>) -> Edge {
    let expanded = Expanded::of_call(call, expand);
    let Expanded { graph, results, .. } = &expanded;
    let is_read = graph.nodes().iter().any(|node| node.inputs.contains(&results[i]));
    let Origin::Node(producer) = graph.info(results[i]).origin else { return Edge::RowMajor };
    if is_read || results.iter().filter(|result| **result == results[i]).count() > 1 {
        return Edge::RowMajor;
    }
    let lowered = Lowered::inside(call.facts, graph, results, HashMap::new());
    let output = graph.nodes()[producer].outputs.iter().position(|output| *output == results[i]);
    let producer = GpuCall::new(&lowered, producer);
    let stored = output.map(|output| producer.op().stores(&producer, output, preferred));
    only_f16_columns(stored.unwrap_or(Edge::RowMajor))
}

fn only_f16_columns(edge: Edge) -> Edge {
    edge.f16_columns().map_or(Edge::RowMajor, Edge::F16Columns)
}

/// Maps buffers of the expanded graph to buffers of the fused operation.
struct Map<'a> {
    expanded: &'a Expanded,
    intermediates: Intermediates,
}

/// Scratch indices of values that are neither inputs nor results.
struct Intermediates {
    first: usize,
    indices: HashMap<Value, usize>,
}

impl Map<'_> {
    fn dispatch(&mut self, node: usize, mut dispatch: Dispatch) -> Dispatch {
        for Bind::Read(buffer) | Bind::Write(buffer) in &mut dispatch.bindings {
            *buffer = self.buffer(node, *buffer);
        }
        dispatch
    }

    fn buffer(&mut self, node: usize, buffer: BufferRef) -> BufferRef {
        let node = &self.expanded.graph.nodes()[node];
        let value = match buffer {
            BufferRef::Scratch(..) => return buffer,
            BufferRef::Input(i) | BufferRef::Slab(i, _) => node.inputs[i],
            BufferRef::Output(i) => node.outputs[i],
            BufferRef::ReaderInput(i) => self.expanded.graph.reader(node).inputs[i],
        };
        let at = |values: &[Value]| values.iter().position(|other| *other == value);
        match (at(&self.expanded.inputs), at(&self.expanded.results), buffer) {
            (Some(i), _, BufferRef::Slab(_, slab)) => BufferRef::Slab(i, slab),
            (Some(i), _, BufferRef::ReaderInput(_)) => BufferRef::Slab(i, 0),
            (Some(i), ..) => BufferRef::Input(i),
            (None, Some(i), _) => BufferRef::Output(i),
            (None, None, _) => {
                let next = self.intermediates.first + self.intermediates.indices.len();
                let index = *self.intermediates.indices.entry(value).or_insert(next);
                BufferRef::Scratch(index, value_bytes(self.expanded.graph.ty(value)))
            }
        }
    }
}

/// Gradients through the simpler operations, which are recomputed.
pub(crate) fn grad(
    graph: &mut Graph,
    node: &NodeValues,
    dy: &[Option<Value>],
    expand: Expand<'_>,
) -> Vec<Option<Value>> {
    let first = graph.nodes().len();
    let results = expand(graph, &node.inputs);
    let known = results.into_iter().zip(dy).filter_map(|(result, dy)| Some((result, (*dy)?)));
    let (known, nodes) = (known.collect(), first..graph.nodes().len());
    let wrt: Vec<Value> = {
        let is_f32 = |value: &&Value| graph.ty(**value).element == Element::F32;
        node.inputs.iter().filter(is_f32).copied().collect()
    };
    let gradients: HashMap<Value, Option<Value>> =
        wrt.iter().copied().zip(walk(graph, nodes, known, &wrt)).collect();
    node.inputs.iter().map(|input| gradients.get(input).copied().flatten()).collect()
}
