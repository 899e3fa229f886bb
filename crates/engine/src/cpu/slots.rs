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

#[cfg(test)]
mod tests {
    use super::{assign, work_bytes};
    use crate::{
        cpu::{CpuPlan, CpuStates, Data},
        graph::{Graph, Step, Type, Value},
    };

    /// `16 x` by four sums, the second of which is kept, and then one of another size.
    fn graph() -> (Graph, [Value; 2]) {
        let mut g = Graph::new();
        let x = g.input("x", Type::f32([1, 64]));
        let two = g.add(x, x);
        let four = g.add(two, two);
        g.keep(four);
        let eight = g.add(four, four);
        let last = g.add(eight, eight);
        g.keep(last);
        let y = g.input("y", Type::f32([1, 32]));
        let other = g.add(y, y);
        g.keep(other);
        (g, [four, last])
    }

    #[test]
    fn values_share_memory_unless_they_are_kept() {
        let (g, kept) = graph();
        let slots = assign(&g);
        // `two` and `last` share one; `four`, `eight` and the value of another size have their own.
        assert_eq!(slots.types.len(), 4, "{slots:?}");
        assert_ne!(slots.of[&kept[0]], slots.of[&kept[1]]);
        assert_eq!(work_bytes(&g), 4 * (64 + 32 + 3 * 64 + 32));
    }

    #[test]
    fn shared_memory_changes_no_result() {
        let (g, kept) = graph();
        let plan = CpuPlan::with_states(g, |_, _| None, &mut CpuStates::new()).expect("no weights");
        let x: Vec<f32> = (0..64).map(|i| i as f32).collect();
        plan.write("x", Data::F32(x.clone()));
        for _ in 0..2 {
            plan.run(&Step::default());
            for (value, factor) in kept.into_iter().zip([4.0, 16.0]) {
                let wanted: Vec<f32> = x.iter().map(|x| factor * x).collect();
                assert_eq!(plan.read(value), wanted);
            }
        }
    }
}
