//! Sums that the producer of an addend computes itself, instead of an operation of their own.

use std::rc::Rc;

use super::{Graph, Node, Origin, Value};

impl Graph {
    /// `sum + addend`. If a node from `first` on computes the addend, which nothing reads yet, and can add a base to it, that node adds `sum`.
    pub(crate) fn add_folded(&mut self, sum: Value, addend: Value, first: usize) -> Value {
        let is_before = |node| match self.info(sum).origin {
            Origin::Node(of_sum) => of_sum < node,
            _ => true,
        };
        let node = self.unread_producer(addend).filter(|node| *node >= first && is_before(*node));
        let node = node.map(|node| &mut self.nodes[node]);
        match node.filter(|Node { op, inputs, .. }| op.takes_base(inputs.len())) {
            Some(node) => {
                node.inputs.push(sum);
                addend
            }
            None => self.add(sum, addend),
        }
    }

    /// Adds `value`, which must not be used any more, to `state`: in the operation that computes it, if that can write the sum and nothing
    /// reads the value; otherwise as [`Self::accumulate`].
    pub fn accumulate_last(&mut self, state: Value, value: Value) {
        let accumulating = self.unread_producer(value).and_then(|index| {
            let Node { op, inputs, .. } = &self.nodes[index];
            let untouched = self.nodes[index..].iter().all(|node| !node.inputs.contains(&state));
            Some((index, op.accumulating(inputs.len()).filter(|_| untouched)?))
        });
        let Some((index, op)) = accumulating else { return self.accumulate(state, value) };
        let mut inputs = self.nodes[index].inputs.clone();
        inputs.push(state);
        let types: Vec<_> = inputs.iter().map(|value| self.ty(*value)).collect();
        assert!(op.infer(&types).is_empty(), "{} returns what it accumulates", op.name());
        self.nodes[index] = Node { op: Rc::clone(&op), inputs, outputs: Vec::new() };
    }

    /// The node whose only result is this value, if nothing reads or names it.
    fn unread_producer(&self, value: Value) -> Option<usize> {
        let info = self.info(value);
        let Origin::Node(index) = info.origin else { return None };
        let only = self.nodes[index].outputs == [value] && !info.kept && info.tap.is_none();
        let read = self.nodes[index..].iter().any(|node| node.inputs.contains(&value));
        (only && !read).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{Graph, Type, backward};

    /// Names of the operations of a graph.
    fn names(graph: &Graph) -> Vec<&'static str> {
        graph.nodes().iter().map(|node| node.op.name()).collect()
    }

    #[test]
    fn gradients_of_a_shared_input_are_added_by_their_matmuls() {
        let mut g = Graph::new();
        let x = g.input("x", Type::f32([3, 4]));
        let [a, b] = ["a", "b"].map(|name| g.input(name, Type::f32([5, 4])));
        let (left, right) = (g.matmul_nt(x, a), g.matmul_nt(x, b));
        let y = g.mul(left, right);
        let dy = g.input("dy", Type::f32([3, 5]));
        backward(&mut g, y, dy, &[x]);
        assert!(!names(&g).contains(&"add"), "{:?}", names(&g));
        let based = g.nodes().iter().filter(|node| node.op.name() == "matmul");
        assert_eq!(based.filter(|node| node.inputs.len() == 3).count(), 1);
    }

    #[test]
    fn a_gradient_that_flows_twice_is_not_changed() {
        let mut g = Graph::new();
        let [x, a] = ["x", "a"].map(|name| g.input(name, Type::f32([4, 4])));
        let twice = g.add(x, x);
        let y = g.matmul_nt(twice, a);
        let dy = g.input("dy", Type::f32([4, 4]));
        backward(&mut g, y, dy, &[x]);
        assert!(g.nodes().iter().all(|node| node.inputs.len() == 2));
    }

    #[test]
    fn matmuls_accumulate_what_nothing_else_reads() {
        for read in [false, true] {
            let mut g = Graph::new();
            let [x, a] = ["x", "a"].map(|name| g.input(name, Type::f32([4, 4])));
            let state = g.state("state", Type::f32([4, 4]));
            let y = g.matmul_tn(x, a);
            if read {
                g.add(y, x);
            }
            g.accumulate_last(state, y);
            let wanted: &[&str] = if read { &["matmul", "add", "accumulate"] } else { &["matmul"] };
            assert_eq!(names(&g), wanted);
        }
    }
}
