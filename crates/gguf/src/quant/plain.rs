//! F32, F64 and integers: one native number per block.

/// F32.
pub fn decode_f32(block: &[u8; 4], out: &mut [f32; 1]) {
    out[0] = f32::from_le_bytes(*block);
}

/// F32.
pub fn encode_f32(values: &[f32; 1], block: &mut [u8; 4]) {
    *block = values[0].to_le_bytes();
}

/// F64, rounded.
#[expect(clippy::cast_possible_truncation, reason = "rounding is intended")]
pub fn decode_f64(block: &[u8; 8], out: &mut [f32; 1]) {
    out[0] = f64::from_le_bytes(*block) as f32;
}

/// I8.
pub fn decode_i8(block: &[u8; 1], out: &mut [f32; 1]) {
    out[0] = i8::from_le_bytes(*block).into();
}

/// I16.
pub fn decode_i16(block: &[u8; 2], out: &mut [f32; 1]) {
    out[0] = i16::from_le_bytes(*block).into();
}

/// I32, rounded.
pub fn decode_i32(block: &[u8; 4], out: &mut [f32; 1]) {
    out[0] = i32::from_le_bytes(*block) as f32;
}

/// I64, rounded.
pub fn decode_i64(block: &[u8; 8], out: &mut [f32; 1]) {
    out[0] = i64::from_le_bytes(*block) as f32;
}
