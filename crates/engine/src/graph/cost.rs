//! What a list costs on any machine: dispatches, bytes moved, operations.

use std::ops::AddAssign;

use super::{Element, Graph, Node, Type};

/// Counts that hold on every device, unlike times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Kernel launches.
    pub dispatches: u64,
    /// Bytes read from memory at least once.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Multiplications and additions.
    pub operations: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.dispatches += other.dispatches;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.operations += other.operations;
    }
}

impl Graph {
    /// What one operation moves and computes; launches are the plan's to count.
    pub fn node_cost(&self, node: &Node) -> Cost {
        let types =
            |values: &[super::Value]| values.iter().map(|v| self.ty(*v)).collect::<Vec<_>>();
        let (inputs, outputs) = (types(&node.inputs), types(&node.outputs));
        Cost {
            dispatches: 0,
            bytes_read: node.op.bytes_read(&inputs, &outputs),
            bytes_written: outputs.iter().map(|ty| ty.bytes()).sum(),
            operations: node.op.operations(&inputs, &outputs),
        }
    }
}

impl Type {
    /// Bytes of a value as the kernels see it.
    pub fn bytes(&self) -> u64 {
        let len = self.shape.len() as u64;
        match self.element {
            Element::F32 | Element::U32 => len * 4,
            Element::F16 => len * 2,
            Element::Q8 => len + len.div_ceil(32) * 4,
            Element::Weight(dtype) => {
                len / dtype.block_elements() as u64 * dtype.block_bytes() as u64
            }
        }
    }

    /// Bytes of `some` of its parts, of `all` equal ones; never more than there are.
    pub(crate) fn bytes_of(&self, some: usize, all: usize) -> u64 {
        self.bytes() / all.max(1) as u64 * some.min(all) as u64
    }
}

#[cfg(test)]
mod tests {
    use rullama_gguf::DType;

    use crate::graph::{Graph, Type};

    /// Bytes that the last node of a list reads.
    fn read(build: impl Fn(&mut Graph)) -> u64 {
        let mut graph = Graph::new();
        build(&mut graph);
        graph.node_cost(graph.nodes().last().expect("a list of one")).bytes_read
    }

    #[test]
    fn what_is_picked_from_is_not_read_whole() {
        let rows = |ids: usize| {
            read(|g| {
                let ids = g.input("ids", Type::u32([ids]));
                let weight = g.weight("w", Type::weight(DType::Q8_0, [10, 64]));
                g.embed(ids, weight, 1.0);
            })
        };
        assert_eq!((rows(3), rows(100)), (3 * 4 + 3 * 68, 100 * 4 + 10 * 68));

        let experts = |tokens: usize| {
            read(|g| {
                let x = g.input("x", Type::f32([tokens, 32]));
                let ids = g.input("ids", Type::u32([tokens, 2]));
                let weight = g.weight("w", Type::weight(DType::Q8_0, [8, 4, 32]));
                g.linear_experts(x, &crate::ops::Routes { ids, groups: None }, weight);
            })
        };
        let others = |tokens: u64| tokens * 32 * 4 + tokens * 2 * 4;
        let expert = 4 * 34;
        assert_eq!((experts(1), experts(9)), (others(1) + 2 * expert, others(9) + 8 * expert));

        let slots = |window: Option<u32>| {
            read(|g| {
                let q = g.input("q", Type::f32([3, 2, 16]));
                let k = g.state("k", Type::f32([100, 1, 16]));
                let v = g.state("v", Type::f32([100, 1, 16]));
                g.attention(q, k, v, window);
            })
        };
        let (q, slot) = (3 * 2 * 16 * 4, 2 * 16 * 4);
        assert_eq!((slots(None), slots(Some(8))), (q + 100 * slot, q + 10 * slot));
    }
}
