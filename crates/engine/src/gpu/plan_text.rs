//! A plan as text: the dispatches of a graph on a device, one per line.

use std::fmt::Write;

use super::{DeviceFacts, Dispatch, Edge, Lowered, Part, check_formats};
use crate::{error::EngineError, graph::Graph};

/// Kinds of parts that follow from other parts or from the device, and are not printed.
const IMPLIED: [&str; 15] = [
    "columns",
    "gelu",
    "int8_dot",
    "params",
    "slab",
    "stage_units",
    "store_layout",
    "sums",
    "team",
    "tile_weights",
    "unit",
    "weights",
    "x_memory",
    "x_unit",
    "x_words",
];

/// Default parts, which are not printed; nor are parts with the name `none`.
const DEFAULT_PARTS: [&str; 5] =
    ["epilogue/per_row", "fetch/direct", "output/plain", "rows/all", "store/floats"];

/// Constants of a kernel's tiling.
const TILING: [&str; 8] = ["WG", "LANES", "SPLIT", "ROWS", "COLUMNS", "TOKENS", "SPLITS", "CHUNKS"];

/// The dispatches of a graph for a device with these facts: for each its operation and result, kernel and parts, tiling, grid, edges that
/// are not row-major, and whether the next dispatch shares its barrier.
///
/// # Errors
/// If the format of a weight has no kernel.
pub fn plan_text(graph: &Graph, facts: &DeviceFacts) -> Result<String, EngineError> {
    check_formats(graph)?;
    let lowered = Lowered::new(facts, graph);
    let dispatches = lowered.dispatches();
    let mut text = String::new();
    for (at, (index, dispatch)) in dispatches.iter().enumerate() {
        let node = &graph.nodes()[*index];
        let is_first = at == 0 || dispatches[at - 1].0 != *index;
        let is_last = dispatches.get(at + 1).is_none_or(|(next, _)| next != index);
        let mut columns = vec![kernel(dispatch), tiling(dispatch), grid(dispatch)];
        let input = node.inputs.first().map_or(Edge::RowMajor, |input| lowered.edge(*input));
        if is_first && input != Edge::RowMajor {
            columns.push(format!("reads {input}"));
        }
        let stored = node.outputs.iter().map(|output| lowered.edge(*output));
        let stored = stored.filter(|edge| is_last && *edge != Edge::RowMajor);
        columns.extend(stored.map(|edge| format!("stores {edge}")));
        if !dispatch.shared_reads.is_empty() {
            columns.push("shares a barrier with the next".into());
        }
        columns.retain(|column| !column.is_empty());
        // Writing to a string cannot fail.
        let _ = write!(text, "{at:>4} {}", node.op.name());
        if let Some(output) = node.outputs.last() {
            let _ = write!(text, " {}", graph.ty(*output));
        }
        let _ = writeln!(text, ": {}", columns.join("; "));
    }
    Ok(text)
}

fn kernel(dispatch: &Dispatch) -> String {
    let printed = |part: &&&'static Part| {
        let default = part.name.ends_with("/none") || DEFAULT_PARTS.contains(&part.name);
        !default && !IMPLIED.contains(&part.kind)
    };
    let parts: Vec<&str> = dispatch.parts.iter().filter(printed).map(|part| part.name).collect();
    match parts.is_empty() {
        true => dispatch.kernel.name.to_owned(),
        false => format!("{} ({})", dispatch.kernel.name, parts.join(", ")),
    }
}

fn tiling(dispatch: &Dispatch) -> String {
    let printed = |(name, _): &&(&str, f64)| TILING.contains(name);
    let constants: Vec<String> = dispatch
        .constants
        .iter()
        .filter(printed)
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    constants.join(" ")
}

fn grid(dispatch: &Dispatch) -> String {
    match dispatch.grid {
        [x, 1, 1] => format!("grid {x}"),
        [x, y, 1] => format!("grid {x}x{y}"),
        [x, y, z] => format!("grid {x}x{y}x{z}"),
    }
}

#[cfg(test)]
mod tests {
    use rullama_gguf::DType;

    use super::plan_text;
    use crate::{
        gpu::{DeviceFacts, Tuning},
        graph::{Graph, Type},
        ops::{Epilogue, Prologue},
    };

    #[test]
    fn a_line_names_kernel_tiling_grid_and_edges() {
        let mut g = Graph::new();
        let h = g.input("h", Type::f32([1, 64]));
        let weight = g.weight("norm", Type::weight(DType::F32, [64]));
        let gate_up = g.weight("gate_up", Type::weight(DType::Q8_0, [512, 64]));
        let prologue = Prologue::Norm { h, weight, eps: 1e-6 };
        let x = g.fused_linear(&prologue, gate_up, &Epilogue::GEGLU).1;
        let down = g.weight("down", Type::weight(DType::Q4_K, [8, 256]));
        let y = g.linear(x, down);
        g.keep(y);
        let facts = DeviceFacts {
            packed_dot: true,
            tuning: Tuning { busy_lanes: 64, ..Tuning::default() },
            ..DeviceFacts::floor()
        };
        let text = plan_text(&g, &facts).expect("the formats have kernels");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        for word in
            ["fused_linear", "matmul/gemv", "prologue/norm", "epilogue/gated", "gate/gelu", "grid "]
        {
            assert!(lines[0].contains(word), "{word}: {text}");
        }
        let edge = "permuted int8 pairs, 8 units by 64 columns";
        assert!(lines[0].ends_with(&format!("stores {edge}")), "{text}");
        assert!(lines[1].ends_with(&format!("reads {edge}")), "{text}");
        let floor = plan_text(&g, &DeviceFacts::floor()).expect("the formats have kernels");
        assert!(!floor.contains("int8"), "{floor}");
    }
}
