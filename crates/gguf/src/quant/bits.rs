//! Helpers shared by the block formats.

use half::f16;

/// The f16 at byte `at`.
///
/// Written by hand because it is inlined and vectorised, unlike a call that detects CPU features.
pub(crate) fn half(block: &[u8], at: usize) -> f32 {
    const TWO_TO_112: f32 = f32::from_bits((127 + 112) << 23);
    let bits = u32::from(u16::from_le_bytes([block[at], block[at + 1]]));
    // The exponent's bias differs by 112; multiplying also handles subnormals.
    let magnitude = (f32::from_bits((bits & 0x7FFF) << 13) * TWO_TO_112).to_bits();
    let special = if bits & 0x7C00 == 0x7C00 { 0x7F80_0000 } else { 0 };
    f32::from_bits(magnitude | special | (bits & 0x8000) << 16)
}

/// Whether the f16 at byte `at` is finite.
pub(crate) fn half_is_finite(block: &[u8], at: usize) -> bool {
    block[at + 1] & 0x7C != 0x7C
}

/// Stores `value` as f16 at byte `at`; returns the rounded value that a decoder reads.
pub(crate) fn put_half(block: &mut [u8], at: usize, value: f32) -> f32 {
    let rounded = f16::from_f32(value);
    block[at..at + 2].copy_from_slice(&rounded.to_le_bytes());
    rounded.to_f32()
}

/// 1 / `x`, and 0 for 0: with a zero scale, all elements get the zero level.
pub(crate) fn inverse(x: f32) -> f32 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

/// The level nearest to `x`, from 0 to `max`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped; NaN becomes 0"
)]
pub(crate) fn level(x: f32, max: u8) -> u8 {
    x.round().clamp(0.0, f32::from(max)) as u8
}

/// The element of largest magnitude with its sign; the first of several.
pub(crate) fn extreme(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |best: f32, &x| if x.abs() > best.abs() { x } else { best })
}

/// The smallest and the largest element.
pub(crate) fn bounds(values: &[f32]) -> (f32, f32) {
    values
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)))
}

/// Scale and minimum for `x = scale * q - minimum` with q from 0 to `levels`; neither is negative.
pub(crate) fn affine(values: &[f32], levels: f32) -> (f32, f32) {
    let (low, high) = bounds(values);
    let low = low.min(0.0);
    ((high.max(0.0) - low) / levels, -low)
}

/// Packs two elements per byte: the first half of the elements in the low nibbles, the second half in the high ones.
pub(crate) fn pack_nibbles(levels: &[u8], bytes: &mut [u8]) {
    let (low, high) = levels.split_at(bytes.len());
    for ((byte, &low), &high) in bytes.iter_mut().zip(low).zip(high) {
        *byte = low | high << 4;
    }
}
