//! Slots for activations: a value's slot is reused after its last reader.

use std::collections::HashMap;

use super::barriers::is_independent;
use crate::graph::{Element, Graph, Lifetimes, Origin, Type, Value};

/// The slot of each value that a node computes, and the sizes of the slots.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Slots {
    pub(crate) of: HashMap<Value, usize>,
    pub(crate) bytes: Vec<u64>,
}

/// Bytes of a value on the device.
pub(crate) fn value_bytes(ty: &Type) -> u64 {
    let len = ty.shape.len() as u64;
    let bytes = match ty.element {
        Element::F32 | Element::U32 => len * 4,
        Element::F16 => len * 2,
        Element::Q8 => len + len.div_ceil(32) * 4,
        Element::Weight(_) => 0,
    };
    bytes.next_multiple_of(16).max(16)
}

/// Bytes of a graph's activations and inputs on a device.
pub fn work_bytes(graph: &Graph) -> u64 {
    let inputs = graph.values().filter(|(_, info)| matches!(info.origin, Origin::Input(_)));
    let inputs: u64 = inputs.map(|(_, info)| value_bytes(&info.ty)).sum();
    inputs + assign(graph).bytes.iter().sum::<u64>()
}

/// Assigns a slot to every computed value. A node's inputs and outputs never share one, so no buffer is bound read and written at once.
pub(crate) fn assign(graph: &Graph) -> Slots {
    let lifetimes = Lifetimes::of(graph);
    let mut slots = Slots::default();
    let mut free: Vec<usize> = Vec::new();
    for (index, node) in graph.nodes().iter().enumerate() {
        for output in &node.outputs {
            let bytes = value_bytes(graph.ty(*output));
            let used = if is_independent(graph, index) { &[] } else { &free[..] };
            let slot = best_fit(used, &slots.bytes, bytes).map_or_else(
                || {
                    slots.bytes.push(bytes);
                    slots.bytes.len() - 1
                },
                |at| free.swap_remove(at),
            );
            slots.bytes[slot] = slots.bytes[slot].max(bytes);
            slots.of.insert(*output, slot);
        }
        let done = lifetimes.ended(graph, index);
        free.extend(done.iter().filter_map(|value| slots.of.get(value)));
    }
    slots
}

/// The free slot that fits with the least waste, or the largest one, which then grows.
fn best_fit(free: &[usize], sizes: &[u64], bytes: u64) -> Option<usize> {
    let fits = (0..free.len()).filter(|i| sizes[free[*i]] >= bytes).min_by_key(|i| sizes[free[*i]]);
    fits.or_else(|| (0..free.len()).max_by_key(|i| sizes[free[*i]]))
}
