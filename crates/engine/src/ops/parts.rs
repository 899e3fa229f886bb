//! WGSL that several kernels are composed from, and the choice among parts of one kind.

use rullama_gguf::DType;

use crate::gpu::{DeviceFacts, Part};

/// Sums over a workgroup through its memory: works everywhere.
pub(crate) static REDUCE_WORKGROUP: Part = Part {
    kind: "reduce",
    name: "workgroup",
    source: include_str!("../wgsl/reduce/workgroup.wgsl"),
};

/// Sums over a workgroup by subgroups first.
pub(crate) static REDUCE_SUBGROUP: Part =
    Part { kind: "reduce", name: "subgroup", source: include_str!("../wgsl/reduce/subgroup.wgsl") };

/// How a workgroup sums on this device.
pub(crate) fn reduce(facts: &DeviceFacts) -> &'static Part {
    if facts.subgroups.is_some() { &REDUCE_SUBGROUP } else { &REDUCE_WORKGROUP }
}

/// A part from a file under `wgsl/`.
macro_rules! part {
    ($kind:literal, $name:literal) => {{
        static PART: Part = Part {
            kind: $kind,
            name: concat!($kind, "/", $name),
            source: include_str!(concat!("../wgsl/", $kind, "/", $name, ".wgsl")),
        };
        &PART
    }};
}

/// What block formats are written with.
pub(crate) static WEIGHTS: Part =
    Part { kind: "weights", name: "weights", source: include_str!("../wgsl/quant/weights.wgsl") };

/// How 32 weights of a format are read.
///
/// # Panics
/// If no kernel reads the format; loading refuses such weights.
pub(crate) fn quant(dtype: DType) -> &'static Part {
    match dtype {
        DType::F32 => part!("quant", "f32"),
        DType::Q4_K => part!("quant", "q4_k"),
        other => panic!("no kernel reads {}", other.name()),
    }
}

/// How columns of this length are read.
pub(crate) fn columns(width: usize) -> &'static Part {
    if width.is_multiple_of(32) { part!("columns", "quads") } else { part!("columns", "scalars") }
}

/// How a few lanes sum on this device.
pub(crate) fn team(facts: &DeviceFacts) -> &'static Part {
    if facts.subgroups.is_some() { part!("team", "subgroup") } else { part!("team", "workgroup") }
}

/// A unit of a row times a column, from any format and any columns.
pub(crate) static DOT: Part =
    Part { kind: "dot", name: "dot", source: include_str!("../wgsl/columns/dot.wgsl") };
