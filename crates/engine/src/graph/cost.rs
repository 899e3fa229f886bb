//! The cost of a graph, on any machine: dispatches, bytes moved, operations.

use std::ops::AddAssign;

use super::{Element, Graph, Node, Step, Type};

/// Counts that are the same on every device, unlike times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Kernel dispatches.
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
    /// Bytes and operations of a whole run; dispatches are counted by the plan.
    pub fn cost(&self, step: &Step) -> Cost {
        let mut cost = Cost::default();
        self.nodes().iter().for_each(|node| cost += self.node_cost(node, step));
        cost
    }

    /// Bytes and operations of one node in a run; dispatches are counted by the plan.
    pub fn node_cost(&self, node: &Node, step: &Step) -> Cost {
        let types =
            |values: &[super::Value]| values.iter().map(|v| self.ty(*v)).collect::<Vec<_>>();
        let (inputs, outputs) = (types(&node.inputs), types(&node.outputs));
        Cost {
            dispatches: 0,
            bytes_read: node.op.bytes_read(&inputs, step),
            bytes_written: outputs.iter().map(|ty| ty.bytes()).sum(),
            operations: node.op.operations(&inputs, &outputs),
        }
    }
}

impl Type {
    /// Bytes of a value as kernels read it.
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
}
