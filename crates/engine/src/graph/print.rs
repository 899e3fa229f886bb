//! The graph as text, one operation per line, for snapshots and debugging.

use std::fmt;

use super::{Graph, Origin, Value};

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, node) in self.nodes().iter().enumerate() {
            for (i, output) in node.outputs.iter().enumerate() {
                let comma = if i > 0 { ", " } else { "" };
                write!(f, "{comma}{output} {}", self.ty(*output))?;
            }
            let arrow = if node.outputs.is_empty() { "" } else { " = " };
            write!(f, "{arrow}{:?}(", node.op)?;
            for (i, input) in node.inputs.iter().enumerate() {
                let comma = if i > 0 { ", " } else { "" };
                match &self.info(*input).origin {
                    Origin::Node(_) => write!(f, "{comma}{input}")?,
                    Origin::Input(name) | Origin::State(name) => write!(f, "{comma}{name}")?,
                    weight => write!(f, "{comma}{}", weight.weight_name().unwrap_or_default())?,
                }
            }
            f.write_str(")")?;
            let taps = node.outputs.iter().filter_map(|v| self.info(*v).tap.as_deref());
            for tap in taps {
                write!(f, "  # {tap}")?;
            }
            if index + 1 < self.nodes().len() {
                f.write_str("\n")?;
            }
        }
        Ok(())
    }
}
