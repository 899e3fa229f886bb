//! WGSL parts that several operations share, and the selection among parts of one kind.

use rullama_gguf::DType;

use crate::{
    gpu::{DeviceFacts, MatrixInt8, MatrixUnits, Part},
    graph::Element,
    ops::Activation,
};

/// A part in a folder of `wgsl/`.
macro_rules! shared_part {
    ($kind:literal, $name:literal) => {{
        static PART: $crate::gpu::Part = $crate::gpu::Part {
            kind: $kind,
            name: concat!($kind, "/", $name),
            source: include_str!(concat!("../wgsl/", $kind, "/", $name, ".wgsl")),
        };
        &PART
    }};
}

/// Sums over a workgroup: by subgroups first, or through workgroup memory, which works on every device.
pub(crate) fn reduce(facts: &DeviceFacts) -> &'static Part {
    match facts.subgroups {
        Some(_) => shared_part!("reduce", "subgroup"),
        None => shared_part!("reduce", "workgroup"),
    }
}

/// Reads the planes of a weight's slab.
pub(crate) static WEIGHTS: &Part = shared_part!("weights", "words");

/// A unit of x, and its dot product with a unit of weights.
pub(crate) static UNIT: &Part = shared_part!("unit", "unit");

/// A unit of a column, for kernels that read x from global memory.
pub(crate) static X_UNIT: &Part = shared_part!("x_unit", "unit");

/// A format's own text, followed by what formats of its kind share.
macro_rules! quant_with {
    ($name:literal, $shared:literal) => {{
        static PART: Part = Part {
            kind: "quant",
            name: concat!("quant/", $name),
            source: concat!(
                include_str!(concat!("../wgsl/quant/", $name, ".wgsl")),
                include_str!(concat!("../wgsl/quant/", $shared, ".wgsl")),
            ),
        };
        &PART
    }};
}

/// Decodes a unit of 32 weights of a format.
///
/// # Panics
/// If no kernel reads the format; loading refuses such weights.
pub(crate) fn quant(dtype: DType) -> &'static Part {
    match dtype {
        DType::F32 => shared_part!("quant", "f32"),
        DType::F16 => quant_with!("f16", "two_bytes"),
        DType::BF16 => quant_with!("bf16", "two_bytes"),
        DType::Q4_0 => shared_part!("quant", "q4_0"),
        DType::Q4_1 => shared_part!("quant", "q4_1"),
        DType::Q5_0 => shared_part!("quant", "q5_0"),
        DType::Q5_1 => shared_part!("quant", "q5_1"),
        DType::Q8_0 => shared_part!("quant", "q8_0"),
        DType::Q2_K => shared_part!("quant", "q2_k"),
        DType::Q3_K => shared_part!("quant", "q3_k"),
        DType::Q4_K => shared_part!("quant", "q4_k"),
        DType::Q5_K => shared_part!("quant", "q5_k"),
        DType::Q6_K => shared_part!("quant", "q6_k"),
        DType::IQ4_NL => shared_part!("quant", "iq4_nl"),
        DType::IQ4_XS => shared_part!("quant", "iq4_xs"),
        DType::MXFP4 => shared_part!("quant", "mxfp4"),
        DType::NVFP4 => shared_part!("quant", "nvfp4"),
        DType::IQ1_S => quant_with!("iq1_s", "code_book"),
        DType::IQ1_M => quant_with!("iq1_m", "code_book"),
        DType::IQ2_XXS => quant_with!("iq2_xxs", "code_book"),
        DType::IQ2_XS => quant_with!("iq2_xs", "code_book"),
        DType::IQ2_S => quant_with!("iq2_s", "code_book"),
        DType::IQ3_XXS => quant_with!("iq3_xxs", "code_book"),
        DType::IQ3_S => quant_with!("iq3_s", "code_book"),
        DType::TQ1_0 => shared_part!("quant", "tq1_0"),
        DType::TQ2_0 => shared_part!("quant", "tq2_0"),
        other => panic!("no kernel reads {}", other.name()),
    }
}

/// Whether a format's part can load words first and decode them later.
pub(crate) fn is_read_in_words(dtype: DType) -> bool {
    dtype == DType::Q4_K
}

/// Whether weights of a format can be read as packed int8.
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

/// Whether pairs of units of a format share their scales.
pub(crate) fn is_paired(dtype: DType) -> bool {
    matches!(dtype, DType::Q4_K | DType::Q5_K)
}

/// Reads columns of this length.
pub(crate) fn columns(width: usize) -> &'static Part {
    if width.is_multiple_of(32) {
        shared_part!("columns", "vec4")
    } else {
        shared_part!("columns", "scalars")
    }
}

/// Sums over a team of lanes.
pub(crate) fn team(facts: &DeviceFacts) -> &'static Part {
    if facts.subgroups.is_some() {
        shared_part!("team", "subgroup")
    } else {
        shared_part!("team", "workgroup")
    }
}

/// Reads elements of a KV cache.
///
/// # Panics
/// If a cache cannot have this element type.
pub(crate) fn kv(element: Element) -> &'static Part {
    match element {
        Element::F32 => shared_part!("kv", "f32"),
        Element::F16 => shared_part!("kv", "f16"),
        Element::Q8 => shared_part!("kv", "q8"),
        other => panic!("{other:?} is not a cache precision"),
    }
}

/// An f16 KV cache, read as f16 for matrix units.
pub(crate) fn kv_f16_direct() -> &'static Part {
    shared_part!("kv_f16", "direct")
}

/// A KV cache of another element, converted to f16 for matrix units.
pub(crate) fn kv_f16_converted() -> &'static Part {
    shared_part!("kv_f16", "converted")
}

/// Writes elements of a KV cache.
///
/// # Panics
/// If a cache cannot have this element type.
pub(crate) fn kv_store(element: Element) -> &'static Part {
    match element {
        Element::F32 => shared_part!("kv_store", "f32"),
        Element::F16 => shared_part!("kv_store", "f16"),
        Element::Q8 => shared_part!("kv_store", "q8"),
        other => panic!("{other:?} is not a cache precision"),
    }
}

/// The gate of a gated feed-forward layer.
pub(crate) fn gate(activation: Activation) -> &'static Part {
    match activation {
        Activation::Gelu => shared_part!("gate", "gelu"),
        Activation::Silu => shared_part!("gate", "silu"),
    }
}

/// GELU, its slope and a tanh that is safe everywhere.
pub(crate) static GELU: &Part = shared_part!("gelu", "gelu");

/// The sums of tiles in registers.
pub(crate) fn register_sums() -> &'static Part {
    shared_part!("register_sums", "sums")
}

/// GEMM tiles without matrix units, for quantised weights.
pub(crate) fn tile_scalar() -> &'static Part {
    shared_part!("tile", "scalar")
}

/// Register tiles for F32, F16 and BF16 weights, without matrix units; they need a shape and a part that loads weights.
pub(crate) fn tile_register() -> &'static Part {
    shared_part!("tile", "register")
}

/// The shape of a register tile of 64 rows by `columns` columns.
///
/// # Panics
/// If there is no such tile.
pub(crate) fn tile_shape_register(columns: usize) -> &'static Part {
    match columns {
        64 => shared_part!("tile_shape", "register_64x64"),
        32 => shared_part!("tile_shape", "register_64x32"),
        16 => shared_part!("tile_shape", "register_64x16"),
        other => panic!("no register tile has {other} columns"),
    }
}

/// Loads a weight's rows as rows of a register tile.
pub(crate) fn tile_weights_register() -> &'static Part {
    shared_part!("tile_weights", "register")
}

/// GEMM tiles with matrix units; they need one of the shapes below.
pub(crate) fn tile_matrix() -> &'static Part {
    shared_part!("tile", "matrix")
}

/// A tile with matrix units whose subgroups split what is summed over.
pub(crate) fn tile_matrix_split_k() -> &'static Part {
    shared_part!("tile", "matrix_split_k")
}

/// Loads a weight's rows as rows of a tile with matrix units.
pub(crate) fn tile_weights_rows() -> &'static Part {
    shared_part!("tile_weights", "rows")
}

/// Loads a weight's columns as rows of a tile with matrix units.
pub(crate) fn tile_weights_transposed() -> &'static Part {
    shared_part!("tile_weights", "transposed")
}

/// Matrix units in the syntax of a device's API.
pub(crate) fn matrix(units: MatrixUnits) -> &'static Part {
    match units {
        MatrixUnits::Wgpu16 => shared_part!("matrix", "wgpu16"),
        MatrixUnits::Chromium16 => shared_part!("matrix", "chromium16"),
        MatrixUnits::Emulated => shared_part!("matrix", "emulated"),
    }
}

/// Blocks of x in global memory, for a split-K tile.
pub(crate) fn matrix_x(units: MatrixUnits) -> &'static Part {
    match units {
        MatrixUnits::Wgpu16 => shared_part!("matrix_x", "wgpu16"),
        MatrixUnits::Chromium16 => shared_part!("matrix_x", "chromium16"),
        MatrixUnits::Emulated => shared_part!("matrix_x", "emulated"),
    }
}

/// GEMM tiles with int8 matrix units, for rows and columns quantised to int8 hi/lo pairs.
pub(crate) fn tile_int8(units: MatrixInt8) -> [&'static Part; 3] {
    let matrix = match units {
        MatrixInt8::Chromium => shared_part!("matrix", "chromium_int8"),
        MatrixInt8::Emulated => shared_part!("matrix", "emulated_int8"),
    };
    [shared_part!("tile", "int8"), matrix, shared_part!("columns", "int8_pair")]
}

/// Quantises columns for int8 matrix units.
pub(crate) fn prepare_x_int8() -> &'static Part {
    shared_part!("prepare_x", "int8_pair")
}

/// Reads columns converted to f16.
pub(crate) fn columns_f16() -> &'static Part {
    shared_part!("columns", "f16")
}

/// Converts columns to f16 for tiles with matrix units.
pub(crate) fn prepare_x_f16() -> &'static Part {
    shared_part!("prepare_x", "f16")
}

/// Copies columns as f32 for tiles without matrix units.
pub(crate) fn prepare_x_floats() -> &'static Part {
    shared_part!("prepare_x", "floats")
}

/// A tile of 128 rows by 128 columns.
pub(crate) fn tile_shape_128x128() -> &'static Part {
    shared_part!("tile_shape", "128x128")
}

/// A tile of 128 rows by 128 columns with half the workgroup memory.
pub(crate) fn tile_shape_128x128_half() -> &'static Part {
    shared_part!("tile_shape", "128x128_half")
}

/// Stages weights of a format in workgroup memory, for a tile with matrix units.
pub(crate) fn stage_weights(dtype: DType) -> &'static Part {
    if is_packed(dtype) {
        shared_part!("stage_weights", "packed")
    } else {
        shared_part!("stage_weights", "floats")
    }
}

/// Stages weights unit by unit.
pub(crate) static STAGE_UNITS: &Part = shared_part!("stage_units", "units");

/// F16 weights for a tile with matrix units: binding, indexing and staging of their slab.
pub(crate) fn f16_weights() -> [&'static Part; 3] {
    [
        shared_part!("weights", "f16"),
        shared_part!("quant", "f16_direct"),
        shared_part!("stage_weights", "f16"),
    ]
}

/// A tile of 128 rows by 32 columns.
pub(crate) fn tile_shape_128x32() -> &'static Part {
    shared_part!("tile_shape", "128x32")
}

/// A tile of 64 rows by 64 columns.
pub(crate) fn tile_shape_64x64() -> &'static Part {
    shared_part!("tile_shape", "64x64")
}

/// A tile of 64 rows by 32 columns.
pub(crate) fn tile_shape_64x32() -> &'static Part {
    shared_part!("tile_shape", "64x32")
}

/// A tile of so many rows and columns, whose subgroups split what is summed over.
pub(crate) fn tile_shape_split_k(rows: usize, columns: usize) -> &'static Part {
    match (rows, columns) {
        (16, 16) => shared_part!("tile_shape", "split_k_16x16"),
        (16, 32) => shared_part!("tile_shape", "split_k_16x32"),
        (32, 16) => shared_part!("tile_shape", "split_k_32x16"),
        other => panic!("no split-K tile has the shape {other:?}"),
    }
}

/// A tile of 64 rows by 16 columns.
pub(crate) fn tile_shape_64x16() -> &'static Part {
    shared_part!("tile_shape", "64x16")
}
