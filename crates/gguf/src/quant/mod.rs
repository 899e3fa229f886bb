//! Block formats: pure functions between bytes and f32, one file per format.
//!
//! Notation in the files: d is the scale of a block, q the stored level of an element, s the index of a sub-block.

pub mod bf16;
mod bits;
pub mod code_book;
pub mod f16;
mod finite;
pub mod iq1_m;
pub mod iq1_s;
pub mod iq2_s;
pub mod iq2_xs;
pub mod iq2_xxs;
pub mod iq3_s;
pub mod iq3_xxs;
pub mod iq4_nl;
pub mod iq4_xs;
pub mod mxfp4;
pub mod nvfp4;
pub mod plain;
pub mod q2_k;
pub mod q3_k;
pub mod q4_0;
pub mod q4_1;
pub mod q4_k;
pub mod q5_0;
pub mod q5_1;
pub mod q5_k;
pub mod q6_k;
pub mod q8_0;
mod scales;
pub mod tq1_0;
pub mod tq2_0;

use crate::{dtype::DType, error::GgufError};

pub use finite::first_not_finite;

/// Decodes whole blocks; `out` must have exactly their number of elements.
pub fn dequantize(dtype: DType, bytes: &[u8], out: &mut [f32]) -> Result<(), GgufError> {
    check_length(dtype, bytes.len(), out.len())?;
    match dtype {
        DType::F32 => decode(bytes, out, plain::decode_f32),
        DType::F64 => decode(bytes, out, plain::decode_f64),
        DType::I8 => decode(bytes, out, plain::decode_i8),
        DType::I16 => decode(bytes, out, plain::decode_i16),
        DType::I32 => decode(bytes, out, plain::decode_i32),
        DType::I64 => decode(bytes, out, plain::decode_i64),
        DType::F16 => decode(bytes, out, f16::decode),
        DType::BF16 => decode(bytes, out, bf16::decode),
        DType::Q8_0 => decode(bytes, out, q8_0::decode),
        DType::Q4_0 => decode(bytes, out, q4_0::decode),
        DType::Q4_1 => decode(bytes, out, q4_1::decode),
        DType::Q5_0 => decode(bytes, out, q5_0::decode),
        DType::Q5_1 => decode(bytes, out, q5_1::decode),
        DType::Q2_K => decode(bytes, out, q2_k::decode),
        DType::Q3_K => decode(bytes, out, q3_k::decode),
        DType::Q4_K => decode(bytes, out, q4_k::decode),
        DType::Q5_K => decode(bytes, out, q5_k::decode),
        DType::Q6_K => decode(bytes, out, q6_k::decode),
        DType::IQ4_NL => decode(bytes, out, iq4_nl::decode),
        DType::IQ4_XS => decode(bytes, out, iq4_xs::decode),
        DType::MXFP4 => decode(bytes, out, mxfp4::decode),
        DType::NVFP4 => decode(bytes, out, nvfp4::decode),
        DType::IQ1_S => decode(bytes, out, iq1_s::decode),
        DType::IQ1_M => decode(bytes, out, iq1_m::decode),
        DType::IQ2_XXS => decode(bytes, out, iq2_xxs::decode),
        DType::IQ2_XS => decode(bytes, out, iq2_xs::decode),
        DType::IQ2_S => decode(bytes, out, iq2_s::decode),
        DType::IQ3_XXS => decode(bytes, out, iq3_xxs::decode),
        DType::IQ3_S => decode(bytes, out, iq3_s::decode),
        DType::TQ1_0 => decode(bytes, out, tq1_0::decode),
        DType::TQ2_0 => decode(bytes, out, tq2_0::decode),
        DType::Q8_1 | DType::Q8_K => return Err(GgufError::NoDecoder { dtype }),
    }
    Ok(())
}

/// Encodes whole blocks.
///
/// Q8_0, Q4_0 and the floats equal the output of other writers; the other formats are valid but not optimised for the
/// smallest error, as a real quantiser would.
pub fn quantize(dtype: DType, values: &[f32]) -> Result<Vec<u8>, GgufError> {
    let bytes = values.len() / dtype.block_elements() * dtype.block_bytes();
    check_length(dtype, bytes, values.len())?;
    let mut out = vec![0; bytes];
    match dtype {
        DType::F32 => encode(values, &mut out, plain::encode_f32),
        DType::F16 => encode(values, &mut out, f16::encode),
        DType::BF16 => encode(values, &mut out, bf16::encode),
        DType::Q8_0 => encode(values, &mut out, q8_0::encode),
        DType::Q4_0 => encode(values, &mut out, q4_0::encode),
        DType::Q4_1 => encode(values, &mut out, q4_1::encode),
        DType::Q5_0 => encode(values, &mut out, q5_0::encode),
        DType::Q5_1 => encode(values, &mut out, q5_1::encode),
        DType::Q2_K => encode(values, &mut out, q2_k::encode),
        DType::Q3_K => encode(values, &mut out, q3_k::encode),
        DType::Q4_K => encode(values, &mut out, q4_k::encode),
        DType::Q5_K => encode(values, &mut out, q5_k::encode),
        DType::Q6_K => encode(values, &mut out, q6_k::encode),
        DType::IQ4_NL => encode(values, &mut out, iq4_nl::encode),
        DType::IQ4_XS => encode(values, &mut out, iq4_xs::encode),
        DType::MXFP4 => encode(values, &mut out, mxfp4::encode),
        DType::NVFP4 => encode(values, &mut out, nvfp4::encode),
        _ => return Err(GgufError::NoEncoder { dtype }),
    }
    Ok(out)
}

fn check_length(dtype: DType, bytes: usize, elements: usize) -> Result<(), GgufError> {
    let blocks = bytes / dtype.block_bytes();
    let whole = bytes.is_multiple_of(dtype.block_bytes())
        && elements.is_multiple_of(dtype.block_elements());
    if whole && elements / dtype.block_elements() == blocks {
        return Ok(());
    }
    Err(GgufError::BlockLength { dtype, bytes, elements })
}

fn decode<const B: usize, const N: usize>(
    bytes: &[u8],
    out: &mut [f32],
    block: impl Fn(&[u8; B], &mut [f32; N]),
) {
    for (bytes, out) in bytes.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        block(bytes, out);
    }
}

fn encode<const B: usize, const N: usize>(
    values: &[f32],
    out: &mut [u8],
    block: impl Fn(&[f32; N], &mut [u8; B]),
) {
    for (values, out) in values.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        block(values, out);
    }
}
