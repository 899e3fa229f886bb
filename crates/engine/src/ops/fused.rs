//! Operations that stand for several others: their reference, their gradient, and their dispatches where no kernel does it all at once.

use std::collections::HashMap;

use crate::{
    cpu::{CpuCall, CpuPlan, Data},
    gpu::{Bind, BufferRef, Dispatch, GpuCall, Lowered, value_bytes},
    graph::{Element, Graph, NodeValues, Type, Value, walk},
};

/// Appends the others to a graph: from the fused operation's inputs to its results.
pub(crate) type Expand<'a> = &'a dyn Fn(&mut Graph, &[Value]) -> Vec<Value>;

/// The others as a graph of their own; inputs are named by their numbers.
struct Others {
    graph: Graph,
    inputs: Vec<Value>,
    results: Vec<Value>,
}

impl Others {
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
}

/// Types of what the others make: they know what fits.
pub(crate) fn infer(inputs: &[&Type], expand: Expand<'_>) -> Vec<Type> {
    let others = Others::new(Graph::new(), inputs.iter().copied(), expand);
    others.results.iter().map(|value| others.graph.ty(*value).clone()).collect()
}

/// What the others compute.
pub(crate) fn cpu(call: &CpuCall<'_>, expand: Expand<'_>) {
    let Others { graph, inputs, results } =
        Others::new(Graph::new(), (0..call.inputs()).map(|i| call.input(i)), expand);
    let number = |name: &str| name.parse::<usize>().expect("inputs are named by their numbers");
    let weights = |name: &str, _: &Type| Some(call.weight(number(name)).clone());
    let plan = CpuPlan::new(graph, weights).expect("the weights of the outer graph fit");
    for i in 0..inputs.len() {
        match call.input(i).element {
            Element::Weight(_) => {}
            Element::U32 => plan.write(&i.to_string(), Data::U32(call.u32(i).to_vec())),
            _ => plan.write(&i.to_string(), Data::F32(call.f32(i).to_vec())),
        }
    }
    plan.run(call.step);
    for (i, result) in results.iter().enumerate() {
        call.out(i).copy_from_slice(&plan.read(*result));
    }
}

/// The others' dispatches; their intermediate values lie in scratch memory, after their own.
pub(crate) fn gpu(call: &GpuCall<'_>, expand: Expand<'_>) -> Vec<Dispatch> {
    let graph = if call.is_batch_invariant() { Graph::new_batch_invariant() } else { Graph::new() };
    let others = Others::new(graph, (0..call.inputs()).map(|i| call.input(i)), expand);
    let graph = &others.graph;
    let lowered = Lowered::new(call.facts, graph);
    let dispatches: Vec<(usize, Dispatch)> = (0..graph.nodes().len())
        .flat_map(|node| {
            let dispatches = lowered.node_dispatches(node);
            dispatches.into_iter().map(move |dispatch| (node, dispatch))
        })
        .collect();
    let places = dispatches.iter().flat_map(|(_, dispatch)| &dispatch.bindings);
    let own = places.filter_map(|(Bind::Read(place) | Bind::Write(place))| match place {
        BufferRef::Scratch(number, _) => Some(number + 1),
        _ => None,
    });
    let intermediates = Intermediates { first: own.max().unwrap_or(0), numbers: HashMap::new() };
    let mut map = Map { others: &others, intermediates };
    dispatches.into_iter().map(|(node, dispatch)| map.moved(node, dispatch)).collect()
}

/// Where values of the others lie for the fused operation.
struct Map<'a> {
    others: &'a Others,
    intermediates: Intermediates,
}

/// Scratch numbers of values that are neither inputs nor results.
struct Intermediates {
    first: usize,
    numbers: HashMap<Value, usize>,
}

impl Map<'_> {
    fn moved(&mut self, node: usize, mut dispatch: Dispatch) -> Dispatch {
        for Bind::Read(place) | Bind::Write(place) in &mut dispatch.bindings {
            *place = self.place(node, *place);
        }
        dispatch
    }

    fn place(&mut self, node: usize, place: BufferRef) -> BufferRef {
        let node = &self.others.graph.nodes()[node];
        let value = match place {
            BufferRef::Scratch(..) => return place,
            BufferRef::Input(i) | BufferRef::Slab(i, _) => node.inputs[i],
            BufferRef::Output(i) => node.outputs[i],
            BufferRef::ReaderInput(i) => self.others.graph.reader(node).inputs[i],
        };
        let at = |values: &[Value]| values.iter().position(|other| *other == value);
        match (at(&self.others.inputs), at(&self.others.results), place) {
            (Some(i), _, BufferRef::Slab(_, slab)) => BufferRef::Slab(i, slab),
            (Some(i), _, BufferRef::ReaderInput(_)) => BufferRef::Slab(i, 0),
            (Some(i), ..) => BufferRef::Input(i),
            (None, Some(i), _) => BufferRef::Output(i),
            (None, None, _) => {
                let next = self.intermediates.first + self.intermediates.numbers.len();
                let number = *self.intermediates.numbers.entry(value).or_insert(next);
                BufferRef::Scratch(number, value_bytes(self.others.graph.ty(value)))
            }
        }
    }
}

/// Gradients through the others, which are computed again.
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
    let numbers: Vec<Value> = {
        let is_number = |value: &&Value| graph.ty(**value).element == Element::F32;
        node.inputs.iter().filter(is_number).copied().collect()
    };
    let gradients: HashMap<Value, Option<Value>> =
        numbers.iter().copied().zip(walk(graph, nodes, known, &numbers)).collect();
    node.inputs.iter().map(|input| gradients.get(input).copied().flatten()).collect()
}
