//! Detects NaN and infinity: decoders pass them through, a loader rejects them.

use super::{bits::half_is_finite, dequantize, iq1_m};
use crate::{dtype::DType, error::GgufError};

/// Elements checked at a time; a multiple of every block size.
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
        if surely_finite(dtype, bytes) {
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

/// Whether the scales alone prove that some blocks are finite: no product of a finite f16 with the small integers of a
/// block overflows `f32`.
fn surely_finite(dtype: DType, bytes: &[u8]) -> bool {
    match dtype {
        DType::F32 => all(bytes, |b| f32::from_le_bytes(*b).is_finite()),
        DType::BF16 => all(bytes, |b: &[u8; 2]| u16::from_le_bytes(*b) & 0x7F80 != 0x7F80),
        DType::F16 => halves::<2>(bytes, &[0]),
        DType::Q8_0 => halves::<34>(bytes, &[0]),
        DType::Q4_0 | DType::IQ4_NL => halves::<18>(bytes, &[0]),
        DType::Q4_1 => halves::<20>(bytes, &[0, 2]),
        DType::Q5_0 => halves::<22>(bytes, &[0]),
        DType::Q5_1 => halves::<24>(bytes, &[0, 2]),
        DType::Q2_K => halves::<84>(bytes, &[80, 82]),
        DType::Q3_K => halves::<110>(bytes, &[108]),
        DType::Q4_K => halves::<144>(bytes, &[0, 2]),
        DType::Q5_K => halves::<176>(bytes, &[0, 2]),
        DType::Q6_K => halves::<210>(bytes, &[208]),
        DType::IQ4_XS => halves::<136>(bytes, &[0]),
        DType::IQ1_S => halves::<50>(bytes, &[0]),
        DType::IQ1_M => all(bytes, |block| iq1_m::scale_bits(block) & 0x7C00 != 0x7C00),
        DType::IQ2_XXS => halves::<66>(bytes, &[0]),
        DType::IQ2_XS => halves::<74>(bytes, &[0]),
        DType::IQ2_S => halves::<82>(bytes, &[0]),
        DType::IQ3_XXS => halves::<98>(bytes, &[0]),
        DType::IQ3_S => halves::<110>(bytes, &[0]),
        DType::TQ1_0 => halves::<54>(bytes, &[52]),
        DType::TQ2_0 => halves::<66>(bytes, &[64]),
        // 2^(252 - 128) * 12 < 2^128
        DType::MXFP4 => all(bytes, |block: &[u8; 17]| block[0] <= 252),
        DType::NVFP4 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => true,
        _ => false,
    }
}

/// Whether the f16 at the offsets `scales` are finite in every block of `B` bytes.
fn halves<const B: usize>(bytes: &[u8], scales: &[usize]) -> bool {
    all(bytes, |block: &[u8; B]| scales.iter().all(|&at| half_is_finite(block, at)))
}

/// Checks every block, even after a non-finite one: a loop without an early exit is vectorised.
fn all<const B: usize>(bytes: &[u8], finite: impl Fn(&[u8; B]) -> bool) -> bool {
    bytes.as_chunks().0.iter().fold(true, |so_far, block| so_far & finite(block))
}
