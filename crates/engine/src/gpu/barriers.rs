//! Barrier elision. wgpu puts a barrier before a dispatch that reads a buffer written before or writes a buffer used before, and a
//! barrier waits for all earlier dispatches. The inputs of a dispatch that is independent of the previous one are therefore bound to the
//! previous one as well, invisible to its kernel, so that both share one barrier; its outputs get memory that the pass has not used yet.

use super::{Bind, BufferRef, DeviceFacts, Dialect, Dispatch, memory::value_bytes};
use crate::graph::{Graph, Node, Origin, Value};

/// Only outputs up to this size get memory of their own: enough for the activations of a token.
const SMALL: u64 = 64 << 10;

/// Whether node `index` is independent of the one before it.
pub(super) fn is_independent(graph: &Graph, index: usize) -> bool {
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

/// Lets independent dispatches share a barrier where bindings are left for it. Not in browsers: they track buffer usage across submits
/// and put a barrier before any write.
pub(super) fn share(facts: &DeviceFacts, graph: &Graph, dispatches: &mut [(usize, Dispatch)]) {
    if Dialect::of_this_build() == Dialect::Browser {
        return;
    }
    for at in 1..dispatches.len() {
        let index = dispatches[at].0;
        let scratch = |bind: &Bind| {
            matches!(bind, Bind::Read(BufferRef::Scratch(..)) | Bind::Write(BufferRef::Scratch(..)))
        };
        let only = dispatches.get(at + 1).is_none_or(|next| next.0 != index);
        let single = only && !dispatches[at].1.bindings.iter().any(scratch);
        if single && dispatches[at - 1].0 + 1 == index && is_independent(graph, index) {
            let (before, shared_reads) = (&mut dispatches[at - 1].1, read_by(graph, index));
            if before.bindings.len() + shared_reads.len() <= facts.storage_buffers as usize {
                before.shared_reads = shared_reads;
            }
        }
    }
}

/// The values that node `index` reads from other nodes and the node before it does not read.
fn read_by(graph: &Graph, index: usize) -> Vec<Value> {
    let (before, node) = (&graph.nodes()[index - 1], &graph.nodes()[index]);
    let is_computed = |value: &&Value| matches!(graph.info(**value).origin, Origin::Node(_));
    let mut read: Vec<Value> = node.inputs.iter().filter(is_computed).copied().collect();
    read.retain(|value| !before.inputs.contains(value));
    read.sort_unstable();
    read.dedup();
    read
}

#[cfg(test)]
mod tests {
    use rullama_gguf::DType;

    use super::is_independent;
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
        // Each reads one of the two sums, so neither waits for the other.
        let first = g.linear(other, a);
        let second = g.linear(one, b);
        let last = g.add(first, second);
        g.keep(last);
        let independent: Vec<bool> = (0..5).map(|index| is_independent(&g, index)).collect();
        assert_eq!(independent, [false, false, false, true, false]);
        let dispatches: Vec<_> = GpuCall::dispatches(&DeviceFacts::floor(), &g).collect();
        let shared_reads: Vec<_> =
            dispatches.iter().map(|(_, dispatch)| &dispatch.shared_reads[..]).collect();
        assert_eq!(shared_reads, [&[][..], &[], &[one], &[], &[]]);
        // No binding is left for the second dispatch's input.
        let bound = dispatches[2].1.bindings.len() as u32;
        let full = DeviceFacts { storage_buffers: bound, ..DeviceFacts::floor() };
        let dispatches: Vec<_> = GpuCall::dispatches(&full, &g).collect();
        assert!(dispatches.iter().all(|(_, dispatch)| dispatch.shared_reads.is_empty()));
        let slots = assign(&g);
        let used = [one, other, first].map(|value| slots.of[&value]);
        assert!(!used.contains(&slots.of[&second]), "{slots:?}");
    }
}
