//! Weights in their file's format, 32 at a time: levels as signed bytes, and scales. The formulas are those of `rullama_gguf::quant`.

use rullama_gguf::quant::iq4_nl;

use super::lanes::Lanes;

/// A format with blocks of 32 weights and one scale, or of floats.
pub(super) trait Format {
    /// Bytes of a block.
    const BYTES: usize;
    /// Whether a block begins with an F16 that scales its values.
    const SCALED: bool;
    /// The values of a block, before they are scaled.
    fn values<L: Lanes>(lanes: L, block: &[u8]) -> [L::Floats; 2];
    /// The same as signed bytes, if the format has a scale.
    #[inline(always)]
    fn levels<L: Lanes>(_: L, _: &[u8]) -> Option<L::Bytes> {
        None
    }
}

/// The `N` elements from `from` on; blocks have a constant length, so that the check is compiled away.
#[inline(always)]
pub(super) fn at<T, const N: usize>(block: &[T], from: usize) -> &[T; N] {
    block[from..].first_chunk().expect("a whole block")
}

/// The word at `from`.
#[inline(always)]
pub(super) fn word(block: &[u8], from: usize) -> u32 {
    u32::from_le_bytes(*at(block, from))
}

#[derive(Debug)]
pub(super) struct Q8_0;

impl Format for Q8_0 {
    const BYTES: usize = 34;
    const SCALED: bool = true;

    #[inline(always)]
    fn values<L: Lanes>(lanes: L, block: &[u8]) -> [L::Floats; 2] {
        [lanes.signed(at(block, 2)), lanes.signed(at(block, 18))]
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, block: &[u8]) -> Option<L::Bytes> {
        Some(lanes.bytes(at(block, 2)))
    }
}

#[derive(Debug)]
pub(super) struct Q4_0;

impl Format for Q4_0 {
    const BYTES: usize = 18;
    const SCALED: bool = true;

    #[inline(always)]
    fn values<L: Lanes>(lanes: L, block: &[u8]) -> [L::Floats; 2] {
        let nibbles = at(block, 2);
        [lanes.nibbles(nibbles, false, 8), lanes.nibbles(nibbles, true, 8)]
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, block: &[u8]) -> Option<L::Bytes> {
        Some(lanes.minus(lanes.split_nibbles(at(block, 2)), 8))
    }
}

#[derive(Debug)]
pub(super) struct Q5_0;

impl Format for Q5_0 {
    const BYTES: usize = 22;
    const SCALED: bool = true;

    #[inline(always)]
    fn values<L: Lanes>(lanes: L, block: &[u8]) -> [L::Floats; 2] {
        lanes.widen(q5_0_levels(lanes, block))
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, block: &[u8]) -> Option<L::Bytes> {
        Some(q5_0_levels(lanes, block))
    }
}

#[inline(always)]
fn q5_0_levels<L: Lanes>(lanes: L, block: &[u8]) -> L::Bytes {
    // 0 where the fifth bit is set, else -16: what is missing to the level less 16.
    let missing = lanes.minus(lanes.negate(lanes.bytes(&[248; 32]), word(block, 2)), 8);
    lanes.plus(lanes.split_nibbles(at(block, 6)), missing)
}

#[derive(Debug)]
pub(super) struct Iq4Nl;

impl Format for Iq4Nl {
    const BYTES: usize = 18;
    const SCALED: bool = true;

    #[inline(always)]
    fn values<L: Lanes>(lanes: L, block: &[u8]) -> [L::Floats; 2] {
        lanes.widen(iq4_nl_levels(lanes, block))
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, block: &[u8]) -> Option<L::Bytes> {
        Some(iq4_nl_levels(lanes, block))
    }
}

#[inline(always)]
fn iq4_nl_levels<L: Lanes>(lanes: L, block: &[u8]) -> L::Bytes {
    lanes.look_up(&iq4_nl::LEVELS, lanes.split_nibbles(at(block, 2)))
}

#[derive(Debug)]
pub(super) struct F16;

impl Format for F16 {
    const BYTES: usize = 64;
    const SCALED: bool = false;

    #[inline(always)]
    fn values<L: Lanes>(lanes: L, block: &[u8]) -> [L::Floats; 2] {
        [lanes.halves(at(block, 0)), lanes.halves(at(block, 32))]
    }
}

#[derive(Debug)]
pub(super) struct BF16;

impl Format for BF16 {
    const BYTES: usize = 64;
    const SCALED: bool = false;

    #[inline(always)]
    fn values<L: Lanes>(lanes: L, block: &[u8]) -> [L::Floats; 2] {
        [lanes.brain_floats(at(block, 0)), lanes.brain_floats(at(block, 32))]
    }
}

/// Runs `$body` with `$format` as the type of a [`Format`]; `$other` for other formats.
macro_rules! with_format {
    ($dtype:expr, $format:ident => $body:expr, $other:expr) => {{
        use rullama_gguf::DType;
        match $dtype {
            DType::Q8_0 => {
                type $format = $crate::cpu::simd::formats::Q8_0;
                $body
            }
            DType::Q4_0 => {
                type $format = $crate::cpu::simd::formats::Q4_0;
                $body
            }
            DType::Q5_0 => {
                type $format = $crate::cpu::simd::formats::Q5_0;
                $body
            }
            DType::IQ4_NL => {
                type $format = $crate::cpu::simd::formats::Iq4Nl;
                $body
            }
            DType::F16 => {
                type $format = $crate::cpu::simd::formats::F16;
                $body
            }
            DType::BF16 => {
                type $format = $crate::cpu::simd::formats::BF16;
                $body
            }
            _ => $other,
        }
    }};
}
pub(super) use with_format;
