//! Memory of computed values: one is reused after its last reader by a value of the same size.

use std::collections::HashMap;

use crate::graph::{Element, Graph, Lifetimes, Origin, Type, Value};

/// The slot of each value that a node computes, and the types of the slots.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pub(super) of: HashMap<Value, usize>,
    pub(super) types: Vec<Type>,
}

/// What must be equal for two values to share memory: ids or floats, and their number.
fn kind(ty: &Type) -> (bool, usize) {
    (ty.element == Element::U32, ty.shape.len())
}

/// Assigns a slot to every computed value. A node's inputs and outputs never share one.
pub(super) fn assign(graph: &Graph) -> Slots {
    let lifetimes = Lifetimes::of(graph);
    let mut slots = Slots::default();
    let mut free: HashMap<(bool, usize), Vec<usize>> = HashMap::new();
    for (index, node) in graph.nodes().iter().enumerate() {
        for output in &node.outputs {
            let ty = graph.ty(*output);
            let slot = free.get_mut(&kind(ty)).and_then(Vec::pop).unwrap_or_else(|| {
                slots.types.push(ty.clone());
                slots.types.len() - 1
            });
            slots.of.insert(*output, slot);
        }
        for value in lifetimes.ended(graph, index) {
            if let Some(slot) = slots.of.get(&value) {
                free.entry(kind(graph.ty(value))).or_default().push(*slot);
            }
        }
    }
    slots
}

/// Bytes of a graph's activations and inputs on the CPU.
pub fn work_bytes(graph: &Graph) -> u64 {
    let bytes = |ty: &Type| 4 * ty.shape.len() as u64;
    let inputs = graph.values().filter(|(_, info)| matches!(info.origin, Origin::Input(_)));
    let inputs: u64 = inputs.map(|(_, info)| bytes(&info.ty)).sum();
    inputs + assign(graph).types.iter().map(bytes).sum::<u64>()
}
