//! Dispatches side by side. wgpu puts a barrier in front of a dispatch that reads what was written or writes what was used, and a barrier
//! waits for everything. Where a dispatch has nothing to do with the one before it, what it reads is bound to that one as well, unseen by
//! the kernel, so that one barrier does for both; and what it writes is memory that nothing else of the run has used before.

use super::{Bind, DeviceFacts, Dialect, Dispatch, Place, memory::value_bytes};
use crate::graph::{Graph, Node, Origin, Value};

/// Results up to this size get memory of their own: enough for the activations of a token.
const SMALL: u64 = 64 << 10;

/// Whether the operation with this number has nothing to do with the one before it.
pub(super) fn goes_beside(graph: &Graph, index: usize) -> bool {
    let nodes = graph.nodes();
    let Some(before) = index.checked_sub(1).map(|index| &nodes[index]) else { return false };
    let node = &nodes[index];
    let is_state = |value: &Value| matches!(graph.info(*value).origin, Origin::State(_));
    let has_state = |node: &Node| node.inputs.iter().any(is_state);
    let is_small = |value: &Value| value_bytes(graph.ty(*value)) <= SMALL;
    !node.inputs.iter().any(|input| before.outputs.contains(input))
        && !has_state(node)
        && !has_state(before)
        && node.outputs.iter().all(is_small)
}

/// Lets dispatches run side by side where their operations can and there are bindings left for it. Browsers know what a buffer was used for
/// beyond a run, so that there is no memory they would not put a barrier in front of.
pub(super) fn settle(facts: &DeviceFacts, graph: &Graph, dispatches: &mut [(usize, Dispatch)]) {
    if Dialect::of_this_build() == Dialect::Browser {
        return;
    }
    for at in 1..dispatches.len() {
        let index = dispatches[at].0;
        let scratch = |bind: &Bind| {
            matches!(bind, Bind::Read(Place::Scratch(..)) | Bind::Write(Place::Scratch(..)))
        };
        let only = dispatches.get(at + 1).is_none_or(|next| next.0 != index);
        let alone = only && !dispatches[at].1.bindings.iter().any(scratch);
        if alone && dispatches[at - 1].0 + 1 == index && goes_beside(graph, index) {
            let (before, settled) = (&mut dispatches[at - 1].1, read_by(graph, index));
            if before.bindings.len() + settled.len() <= facts.storage_buffers as usize {
                before.settled = settled;
            }
        }
    }
}

/// What other operations of the graph made for this one and not for the one before it.
fn read_by(graph: &Graph, index: usize) -> Vec<Value> {
    let (before, node) = (&graph.nodes()[index - 1], &graph.nodes()[index]);
    let is_made = |value: &&Value| matches!(graph.info(**value).origin, Origin::Node(_));
    let mut read: Vec<Value> = node.inputs.iter().filter(is_made).copied().collect();
    read.retain(|value| !before.inputs.contains(value));
    read.sort_unstable();
    read.dedup();
    read
}

#[cfg(test)]
mod tests {
    use rullama_gguf::DType;

    use super::goes_beside;
    use crate::{
        gpu::{DeviceFacts, GpuCall, memory::assign},
        graph::{Graph, Type},
    };

    #[test]
    fn dispatches_of_independent_operations_share_a_barrier() {
        let mut g = Graph::new();
        let x = g.input("x", Type::f32([1, 64]));
        let weight = |g: &mut Graph, name: &str| {
            g.weight(name.to_owned(), Type::weight(DType::F32, [64, 64]))
        };
        let (a, b) = (weight(&mut g, "a"), weight(&mut g, "b"));
        let one = g.add(x, x);
        let other = g.add(one, x);
        // Each takes one of them: neither waits for the other.
        let first = g.linear(other, a);
        let second = g.linear(one, b);
        let last = g.add(first, second);
        g.keep(last);
        let beside: Vec<bool> = (0..5).map(|index| goes_beside(&g, index)).collect();
        assert_eq!(beside, [false, false, false, true, false]);
        let dispatches: Vec<_> = GpuCall::dispatches(&DeviceFacts::floor(), &g).collect();
        let settled: Vec<_> =
            dispatches.iter().map(|(_, dispatch)| &dispatch.settled[..]).collect();
        assert_eq!(settled, [&[][..], &[], &[one], &[], &[]]);
        // No binding is left for what the second one reads.
        let bound = dispatches[2].1.bindings.len() as u32;
        let few = DeviceFacts { storage_buffers: bound, ..DeviceFacts::floor() };
        let dispatches: Vec<_> = GpuCall::dispatches(&few, &g).collect();
        assert!(dispatches.iter().all(|(_, dispatch)| dispatch.settled.is_empty()));
        let slots = assign(&g);
        let used = [one, other, first].map(|value| slots.of[&value]);
        assert!(!used.contains(&slots.of[&second]), "{slots:?}");
    }
}
