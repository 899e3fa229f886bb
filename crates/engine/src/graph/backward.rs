//! Gradients as more operations: the list is walked from its end, and each operation appends its rule.

use std::{collections::HashMap, ops::Range, rc::Rc};

use super::{Graph, Origin, Value, op::NodeValues};

/// Appends the gradients of `loss` (one number) with respect to `wrt`, and returns them in the same order.
///
/// `seed` is the gradient of the loss itself, usually an input of one 1.0. Rules are asked only along paths that lead to
/// a wanted value; a wanted value that the loss does not depend on gets `None`.
pub fn backward(graph: &mut Graph, loss: Value, seed: Value, wrt: &[Value]) -> Vec<Option<Value>> {
    let nodes = 0..graph.nodes().len();
    walk(graph, nodes, HashMap::from([(loss, seed)]), wrt)
}

/// Walks back over some operations of the list: from the gradients of what they make to those of `wrt`, what they read.
pub(crate) fn walk(
    graph: &mut Graph,
    nodes: Range<usize>,
    mut gradients: HashMap<Value, Value>,
    wrt: &[Value],
) -> Vec<Option<Value>> {
    let leads = leads_to(graph, wrt);
    for index in nodes.rev() {
        let node = &graph.nodes()[index];
        if !node.inputs.iter().any(|input| leads[input.index()]) {
            continue;
        }
        let dy: Vec<Option<Value>> =
            node.outputs.iter().map(|v| gradients.get(v).copied()).collect();
        if dy.iter().all(Option::is_none) {
            continue;
        }
        let (op, values) = (Rc::clone(&node.op), NodeValues::from(node));
        let flows = op.grad(graph, &values, &dy);
        assert_eq!(flows.len(), values.inputs.len(), "{}: one gradient per input", op.name());
        for (input, flow) in values.inputs.iter().zip(flows) {
            let Some(flow) = flow.filter(|_| leads[input.index()]) else { continue };
            let sum = match gradients.get(input) {
                Some(earlier) => graph.add(*earlier, flow),
                None => flow,
            };
            gradients.insert(*input, sum);
        }
    }
    wrt.iter().map(|value| gradients.get(value).copied()).collect()
}

/// For each value of the list so far, whether a wanted value flows into it.
fn leads_to(graph: &Graph, wrt: &[Value]) -> Vec<bool> {
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
