//! F16: IEEE half precision.

use super::bits::{half, put_half};

/// Decodes one element.
pub fn decode(block: &[u8; 2], out: &mut [f32; 1]) {
    out[0] = half(block, 0);
}

/// Encodes one element, rounded to nearest, ties to even.
pub fn encode(values: &[f32; 1], block: &mut [u8; 2]) {
    put_half(block, 0, values[0]);
}
