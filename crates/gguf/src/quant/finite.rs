//! NaN and infinity: decoders pass them on as IEEE says, a loader wants to know before it computes with them.

use super::{bits::half, dequantize};
use crate::{dtype::DType, error::GgufError};

/// Elements that are looked at together; a multiple of every block.
const GROUP: usize = 256;

/// The index of the first element that is NaN or infinite.
pub fn first_not_finite(dtype: DType, bytes: &[u8]) -> Result<Option<usize>, GgufError> {
    if !dtype.decodable() {
        return Err(GgufError::NoDecoder { dtype });
    }
    if !bytes.len().is_multiple_of(dtype.block_bytes()) {
        let elements = bytes.len() / dtype.block_bytes() * dtype.block_elements();
        return Err(GgufError::BlockLength { dtype, bytes: bytes.len(), elements });
    }
    let group_bytes = GROUP / dtype.block_elements() * dtype.block_bytes();
    let mut numbers = [0.0; GROUP];
    for (group, bytes) in bytes.chunks(group_bytes).enumerate() {
        if bytes.chunks_exact(dtype.block_bytes()).all(|block| surely_finite(dtype, block)) {
            continue;
        }
        let numbers = &mut numbers[..bytes.len() / dtype.block_bytes() * dtype.block_elements()];
        dequantize(dtype, bytes, numbers)?;
        if let Some(i) = numbers.iter().position(|x| !x.is_finite()) {
            return Ok(Some(group * GROUP + i));
        }
    }
    Ok(None)
}

/// Whether the scales alone show that a block is finite: no product of a finite half with the small integers
/// of a block leaves the range of `f32`.
fn surely_finite(dtype: DType, block: &[u8]) -> bool {
    let finite = |at: usize| half(block, at).is_finite();
    match dtype {
        DType::Q8_0 | DType::Q4_0 | DType::Q5_0 | DType::IQ4_NL | DType::IQ4_XS => finite(0),
        DType::IQ2_S | DType::IQ3_XXS | DType::IQ3_S | DType::F16 => finite(0),
        DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => finite(0) && finite(2),
        DType::Q2_K => finite(80) && finite(82),
        DType::Q3_K => finite(108),
        DType::Q6_K => finite(208),
        DType::TQ1_0 => finite(52),
        DType::TQ2_0 => finite(64),
        // 2^(252 - 128) * 12 < 2^128
        DType::MXFP4 => block[0] <= 252,
        DType::NVFP4 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => true,
        _ => false,
    }
}
