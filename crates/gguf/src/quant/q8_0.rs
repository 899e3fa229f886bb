//! Q8_0: `x = d * q`, q a signed byte.
//!
//! Bytes: d (half), 32 q.

use super::bits::{half, inverse, put_half};

/// Decodes 32 elements.
pub fn decode(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = half(block, 0);
    for (x, q) in out.iter_mut().zip(&block[2..]) {
        *x = d * f32::from(q.cast_signed());
    }
}

/// Maps the largest magnitude to 127; ties round away from zero.
pub fn encode(values: &[f32; 32], block: &mut [u8; 34]) {
    let d = values.iter().fold(0.0, |most: f32, x| most.max(x.abs())) / 127.0;
    put_half(block, 0, d);
    let inverse = inverse(d);
    for (q, x) in block[2..].iter_mut().zip(values) {
        *q = byte(x * inverse).cast_unsigned();
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a cast of floats saturates")]
fn byte(x: f32) -> i8 {
    x.round() as i8
}
