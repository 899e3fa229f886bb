//! When the memory of computed values can be reused.

use std::collections::HashMap;

use super::{Graph, Origin, Value};

/// The last node that reads each computed value.
pub(crate) struct Lifetimes(HashMap<Value, usize>);

impl Lifetimes {
    /// Those of a graph.
    pub(crate) fn of(graph: &Graph) -> Self {
        let mut last = HashMap::new();
        for (index, node) in graph.nodes().iter().enumerate() {
            for input in
                node.inputs.iter().filter(|v| matches!(graph.info(**v).origin, Origin::Node(_)))
            {
                last.insert(*input, index);
            }
        }
        Self(last)
    }

    /// The values of a node that nothing reads after it, and that are not kept.
    pub(crate) fn ended(&self, graph: &Graph, index: usize) -> Vec<Value> {
        let node = &graph.nodes()[index];
        let mut done: Vec<Value> = node.inputs.iter().chain(&node.outputs).copied().collect();
        done.sort_unstable();
        done.dedup();
        done.retain(|value| {
            self.0.get(value).is_none_or(|at| *at <= index) && !graph.info(*value).kept
        });
        done
    }
}
