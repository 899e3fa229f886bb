//! WGSL that several kernels are composed from, and the choice among parts of one kind.

use rullama_gguf::DType;

use crate::{
    gpu::{DeviceFacts, MatrixBytes, MatrixUnits, Part},
    graph::Element,
};

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

/// What a column holds against a unit of weights, and their product.
pub(crate) static UNIT: Part =
    Part { kind: "unit", name: "unit", source: include_str!("../wgsl/quant/unit.wgsl") };

/// A unit of a column, for kernels that read x where it is.
pub(crate) static X_UNIT: Part =
    Part { kind: "x_unit", name: "unit", source: include_str!("../wgsl/columns/unit.wgsl") };

/// How 32 weights of a format are read.
///
/// # Panics
/// If no kernel reads the format; loading refuses such weights.
pub(crate) fn quant(dtype: DType) -> &'static Part {
    match dtype {
        DType::F32 => part!("quant", "f32"),
        DType::F16 => part!("quant", "f16"),
        DType::BF16 => part!("quant", "bf16"),
        DType::Q4_0 => part!("quant", "q4_0"),
        DType::Q4_1 => part!("quant", "q4_1"),
        DType::Q5_0 => part!("quant", "q5_0"),
        DType::Q5_1 => part!("quant", "q5_1"),
        DType::Q8_0 => part!("quant", "q8_0"),
        DType::Q2_K => part!("quant", "q2_k"),
        DType::Q3_K => part!("quant", "q3_k"),
        DType::Q4_K => part!("quant", "q4_k"),
        DType::Q5_K => part!("quant", "q5_k"),
        DType::Q6_K => part!("quant", "q6_k"),
        DType::IQ4_NL => part!("quant", "iq4_nl"),
        DType::IQ4_XS => part!("quant", "iq4_xs"),
        DType::MXFP4 => part!("quant", "mxfp4"),
        DType::NVFP4 => part!("quant", "nvfp4"),
        other => panic!("no kernel reads {}", other.name()),
    }
}

/// Whether the part of a format can read words first and take them apart later.
pub(crate) fn is_read_in_words(dtype: DType) -> bool {
    dtype == DType::Q4_K
}

/// Whether weights of a format can be read as packed bytes.
pub(crate) fn is_packed(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::Q4_0
            | DType::Q4_1
            | DType::Q5_0
            | DType::Q5_1
            | DType::Q8_0
            | DType::Q4_K
            | DType::Q5_K
            | DType::Q6_K
    )
}

/// Whether units of a format have their scales in common, two by two.
pub(crate) fn is_paired(dtype: DType) -> bool {
    matches!(dtype, DType::Q4_K | DType::Q5_K)
}

/// How columns of this length are read.
pub(crate) fn columns(width: usize) -> &'static Part {
    if width.is_multiple_of(32) { part!("columns", "quads") } else { part!("columns", "scalars") }
}

/// How a few lanes sum on this device.
pub(crate) fn team(facts: &DeviceFacts) -> &'static Part {
    if facts.subgroups.is_some() { part!("team", "subgroup") } else { part!("team", "workgroup") }
}

/// How elements of a KV cache are read.
///
/// # Panics
/// If the element is none of a cache.
pub(crate) fn kv(element: Element) -> &'static Part {
    match element {
        Element::F32 => part!("kv", "f32"),
        Element::F16 => part!("kv", "f16"),
        Element::Q8 => part!("kv", "q8"),
        other => panic!("{other:?} is no element of a cache"),
    }
}

/// An f16 KV cache, read as f16 for matrix units.
pub(crate) fn kv_f16_direct() -> &'static Part {
    part!("kv_f16", "direct")
}

/// A KV cache of another element, converted to f16 for matrix units.
pub(crate) fn kv_f16_converted() -> &'static Part {
    part!("kv_f16", "converted")
}

/// How elements of a KV cache are written.
///
/// # Panics
/// If the element is none of a cache.
pub(crate) fn kv_store(element: Element) -> &'static Part {
    match element {
        Element::F32 => part!("kv_store", "f32"),
        Element::F16 => part!("kv_store", "f16"),
        Element::Q8 => part!("kv_store", "q8"),
        other => panic!("{other:?} is no element of a cache"),
    }
}

/// GELU, its slope and a tanh that is safe everywhere.
pub(crate) static ACTIVATION: Part = Part {
    kind: "activation",
    name: "activation",
    source: include_str!("../wgsl/activation.wgsl"),
};

/// Tiles of products by plain arithmetic.
pub(crate) fn tile_plain() -> &'static Part {
    part!("tile", "plain")
}

/// The same for weights that are kept as numbers; it needs a size and how weights lie.
pub(crate) fn tile_blocks() -> &'static Part {
    part!("tile", "blocks")
}

/// Such a tile of 64 rows by as many columns.
///
/// # Panics
/// If there is no such tile.
pub(crate) fn cut_blocks(columns: usize) -> &'static Part {
    match columns {
        64 => part!("cut", "blocks_64x64"),
        32 => part!("cut", "blocks_64x32"),
        16 => part!("cut", "blocks_64x16"),
        other => panic!("no tile of blocks has {other} columns"),
    }
}

/// Rows of a weight are its rows.
pub(crate) fn lie_blocks() -> &'static Part {
    part!("lie", "blocks")
}

/// Tiles of products by matrix units; they need one of the sizes below.
pub(crate) fn tile_matrix() -> &'static Part {
    part!("tile", "matrix")
}

/// Rows of a weight are rows of a tile by matrix units.
pub(crate) fn along() -> &'static Part {
    part!("lie", "along")
}

/// Columns of a weight are rows of a tile by matrix units.
pub(crate) fn across() -> &'static Part {
    part!("lie", "across")
}

/// Matrix units, as a device's are spoken to.
pub(crate) fn matrix(units: MatrixUnits) -> &'static Part {
    match units {
        MatrixUnits::Wgpu16 => part!("matrix", "wgpu16"),
        MatrixUnits::Chromium16 => part!("matrix", "chromium16"),
        MatrixUnits::Written => part!("matrix", "written"),
    }
}

/// Tiles of products by matrix units of bytes, of rows and columns that were made digits.
pub(crate) fn tile_bytes(units: MatrixBytes) -> [&'static Part; 3] {
    let matrix = match units {
        MatrixBytes::Chromium => part!("matrix", "chromium_bytes"),
        MatrixBytes::Written => part!("matrix", "written_bytes"),
    };
    [part!("tile", "bytes"), matrix, part!("columns", "digits")]
}

/// Columns made digits for them.
pub(crate) fn put_digits() -> &'static Part {
    part!("put", "digits")
}

/// Columns that were made halves.
pub(crate) fn halves() -> &'static Part {
    part!("columns", "halves")
}

/// Columns made halves for tiles by matrix units.
pub(crate) fn put_halves() -> &'static Part {
    part!("put", "halves")
}

/// Columns for other tiles, as they are.
pub(crate) fn put_floats() -> &'static Part {
    part!("put", "floats")
}

/// A tile of 128 rows by 128 columns.
pub(crate) fn cut_128x128() -> &'static Part {
    part!("cut", "128x128")
}

/// The same with half the workgroup memory.
pub(crate) fn cut_128x128_thin() -> &'static Part {
    part!("cut", "128x128_thin")
}

/// How a tile by matrix units brings weights of a format.
pub(crate) fn bring(dtype: DType) -> &'static Part {
    if is_packed(dtype) { part!("bring", "packed") } else { part!("bring", "floats") }
}

/// Weights that are brought in units.
pub(crate) static BROUGHT_UNITS: Part = Part {
    kind: "brought",
    name: "brought/units",
    source: include_str!("../wgsl/bring/units.wgsl"),
};

/// Weights that are halves already, for a tile by matrix units: how their slab is bound, found, and brought.
pub(crate) fn kept_as_halves() -> [&'static Part; 3] {
    [part!("weights", "halves"), part!("quant", "halves"), part!("bring", "halves")]
}

/// A tile of 128 rows by 32 columns.
pub(crate) fn cut_128x32() -> &'static Part {
    part!("cut", "128x32")
}

/// A tile of 64 rows by 64 columns.
pub(crate) fn cut_64x64() -> &'static Part {
    part!("cut", "64x64")
}

/// A tile of 64 rows by 32 columns.
pub(crate) fn cut_64x32() -> &'static Part {
    part!("cut", "64x32")
}

/// A tile of 64 rows by 16 columns.
pub(crate) fn cut_64x16() -> &'static Part {
    part!("cut", "64x16")
}
