//! Gradients as graph operations: the graph is walked backwards, and each operation appends its gradient rule.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    rc::Rc,
};

use super::{Graph, Origin, Value, op::NodeValues};

/// Appends the gradients of `loss` (a scalar) with respect to `wrt`, and returns them in the same order.
///
/// `seed` is the gradient of the loss itself, usually an input of 1.0. Rules run only along paths that lead to a value of `wrt`; a value
/// that the loss does not depend on gets `None`.
pub fn backward(graph: &mut Graph, loss: Value, seed: Value, wrt: &[Value]) -> Vec<Option<Value>> {
    let nodes = 0..graph.nodes().len();
    walk(graph, nodes, HashMap::from([(loss, seed)]), wrt)
}

/// Walks backwards over `nodes`, from the known gradients of their outputs to the gradients of `wrt`.
pub(crate) fn walk(
    graph: &mut Graph,
    nodes: Range<usize>,
    gradients: HashMap<Value, Value>,
    wrt: &[Value],
) -> Vec<Option<Value>> {
    let mut walk = Gradients { known: gradients, wrt: wrt.iter().copied().collect() };
    walk.backward(graph, nodes);
    wrt.iter().map(|value| walk.of(*value)).collect()
}

/// The gradients computed so far, in a backward walk over ranges of nodes from the last to the first.
#[derive(Debug)]
pub struct Gradients {
    known: HashMap<Value, Value>,
    wrt: HashSet<Value>,
}

impl Gradients {
    /// Starts a walk towards `wrt` from known gradients.
    pub fn new(known: impl IntoIterator<Item = (Value, Value)>, wrt: &[Value]) -> Self {
        Self { known: known.into_iter().collect(), wrt: wrt.iter().copied().collect() }
    }

    /// The gradient of a value, as far as the walk has come.
    pub fn of(&self, value: Value) -> Option<Value> {
        self.known.get(&value).copied()
    }

    /// Appends the gradients of the inputs of these nodes to the graph.
    pub fn backward(&mut self, graph: &mut Graph, nodes: Range<usize>) {
        let leads = leads_to(graph, &self.wrt);
        for index in nodes.rev() {
            let node = &graph.nodes()[index];
            if !node.inputs.iter().any(|input| leads[input.index()]) {
                continue;
            }
            let dy: Vec<Option<Value>> = node.outputs.iter().map(|v| self.of(*v)).collect();
            if dy.iter().all(Option::is_none) {
                continue;
            }
            let (op, values) = (Rc::clone(&node.op), NodeValues::from(node));
            let first = graph.nodes().len();
            let flows = op.grad(graph, &values, &dy);
            assert_eq!(flows.len(), values.inputs.len(), "{}: one gradient per input", op.name());
            for (input, flow) in values.inputs.iter().zip(&flows) {
                let Some(flow) = flow.filter(|_| leads[input.index()]) else { continue };
                let once = flows.iter().filter(|other| **other == Some(flow)).count() == 1;
                let sum = match self.of(*input) {
                    Some(earlier) if once => graph.add_folded(earlier, flow, first),
                    Some(earlier) => graph.add(earlier, flow),
                    None => flow,
                };
                self.known.insert(*input, sum);
            }
        }
    }

    /// Like [`Self::backward`] for nodes whose results are no longer kept: they are recomputed from their inputs first.
    ///
    /// # Panics
    /// If one of the nodes writes a state, which must not happen twice.
    pub fn backward_recomputed(&mut self, graph: &mut Graph, nodes: Range<usize>) {
        let first = graph.nodes().len();
        let mut recomputed: HashMap<Value, Value> = HashMap::new();
        for index in nodes {
            let node = &graph.nodes()[index];
            assert!(node.op.writes().is_empty(), "{} cannot be recomputed", node.op.name());
            let (op, outputs) = (Rc::clone(&node.op), node.outputs.clone());
            let inputs: Vec<Value> =
                node.inputs.iter().map(|v| recomputed.get(v).copied().unwrap_or(*v)).collect();
            recomputed.extend(outputs.into_iter().zip(graph.apply_shared(op, &inputs)));
        }
        let known = recomputed.iter().filter_map(|(old, new)| Some((*new, self.of(*old)?)));
        let known: Vec<(Value, Value)> = known.collect();
        self.known.extend(known);
        let nodes = first..graph.nodes().len();
        self.backward(graph, nodes);
    }
}

/// For each value of the graph so far, whether it depends on a value of `wrt`.
fn leads_to(graph: &Graph, wrt: &HashSet<Value>) -> Vec<bool> {
    let mut leads = vec![false; graph.values().count()];
    for (value, info) in graph.values() {
        leads[value.index()] = wrt.contains(&value)
            || match info.origin {
                Origin::Node(node) => {
                    graph.nodes()[node].inputs.iter().any(|input| leads[input.index()])
                }
                _ => false,
            };
    }
    leads
}
