//! The kernels of each operation on a device, by weight format.

use std::collections::{BTreeMap, BTreeSet};

use super::{Case, cases};
use crate::{
    gpu::{DeviceFacts, Dispatch, Lowered},
    graph::{Element, Graph, Node},
};

/// The kernels of one operation for one weight format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    /// The operation's folder.
    pub op: &'static str,
    /// Formats of its weights, if it has any.
    pub format: String,
    /// Kernels and the parts they are composed from.
    pub kernels: Vec<String>,
}

/// The kernels of the suite's graphs on a device: one entry per operation and format, sorted by name.
pub fn support(facts: &DeviceFacts) -> Vec<Support> {
    let mut table: BTreeMap<(&'static str, String), BTreeSet<String>> = BTreeMap::new();
    for graph in cases().iter().flat_map(Case::graphs) {
        let lowered = Lowered::new(facts, &graph);
        for (index, node) in graph.nodes().iter().enumerate() {
            let kernels = table.entry((node.op.name(), format(&graph, node))).or_default();
            let dispatches = lowered.node_dispatches(index);
            kernels.extend(dispatches.iter().map(composition));
        }
    }
    let rows = table.into_iter();
    rows.map(|((op, format), kernels)| Support {
        op,
        format,
        kernels: kernels.into_iter().collect(),
    })
    .collect()
}

/// Formats of the weights a node reads; vectors, which are always f32, are left out.
fn format(graph: &Graph, node: &Node) -> String {
    let types = node.inputs.iter().map(|input| graph.ty(*input));
    let mut names: Vec<&str> = types
        .filter(|ty| ty.shape.dims().len() > 1)
        .filter_map(|ty| match ty.element {
            Element::Weight(dtype) => Some(dtype.name()),
            _ => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// Kernel and parts, without constants and bindings.
fn composition(dispatch: &Dispatch) -> String {
    let parts: Vec<&str> = dispatch.parts.iter().map(|part| part.name).collect();
    match parts.as_slice() {
        [] => dispatch.kernel.name.to_owned(),
        parts => format!("{} ({})", dispatch.kernel.name, parts.join(", ")),
    }
}
