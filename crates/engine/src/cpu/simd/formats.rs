//! Weights in their file's format, 32 at a time: levels as signed bytes, and scales. The formulas are those of `rullama_gguf::quant`.

use super::lanes::{Lanes, WIDTH};

/// How the values of a unit (32 weights) are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scaling {
    /// Not at all.
    None,
    /// By the first scale of the block.
    Block,
    /// By a scale per unit, less a minimum per unit: scales 0 to 7, minima 8 to 15.
    UnitMinimum,
    /// By a scale per half unit.
    Half,
}

/// A block format.
pub(super) trait Format {
    /// Bytes of a block.
    const BYTES: usize;
    /// Units of a block.
    const UNITS: usize;
    /// Its scales.
    const SCALING: Scaling;
    /// The scales of a block.
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> [f32; WIDTH];
    /// The values of a unit, before they are scaled.
    fn unit<L: Lanes>(lanes: L, block: &[u8], unit: usize) -> [L::Floats; 2];
}

/// A format with blocks of 256 weights whose scales are integers times those of the block: `level · scale` is an integer of 16 bits.
pub(super) trait IntegerFormat: Format {
    /// The scales of a block.
    fn integer_scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales;
    /// The levels of a unit.
    fn levels<L: Lanes>(lanes: L, block: &[u8], unit: usize) -> L::Words;
}

/// The scales of a block of an [`IntegerFormat`].
pub(super) struct IntegerScales {
    /// The factor of all scales.
    pub(super) factor: f32,
    /// Of each unit (then only the first eight) or half unit, a pair of equal words.
    pub(super) pairs: [i32; WIDTH],
    /// The factor of all minima, of formats with [`Scaling::UnitMinimum`].
    pub(super) minima_factor: f32,
    /// The minima of the units, in bytes 8 to 15.
    pub(super) minima: [u8; WIDTH],
}

/// A word twice.
#[inline(always)]
fn pair(word: i16) -> i32 {
    let bits = u32::from(word.cast_unsigned());
    (bits << 16 | bits).cast_signed()
}

/// The `N` bytes from `from` on; blocks have a constant length, so that the check is compiled away.
#[inline(always)]
fn at<const N: usize>(block: &[u8], from: usize) -> &[u8; N] {
    block[from..].first_chunk().expect("a whole block")
}

/// The scale in the first two bytes.
#[inline(always)]
fn first_half<L: Lanes>(lanes: L, block: &[u8]) -> [f32; WIDTH] {
    [lanes.half(*at(block, 0)); WIDTH]
}

#[derive(Debug)]
pub(super) struct Q8_0;

impl Format for Q8_0 {
    const BYTES: usize = 34;
    const UNITS: usize = 1;
    const SCALING: Scaling = Scaling::Block;

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> [f32; WIDTH] {
        first_half(lanes, block)
    }

    #[inline(always)]
    fn unit<L: Lanes>(lanes: L, block: &[u8], _: usize) -> [L::Floats; 2] {
        [lanes.signed(at(block, 2)), lanes.signed(at(block, 18))]
    }
}

#[derive(Debug)]
pub(super) struct Q4_0;

impl Format for Q4_0 {
    const BYTES: usize = 18;
    const UNITS: usize = 1;
    const SCALING: Scaling = Scaling::Block;

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> [f32; WIDTH] {
        first_half(lanes, block)
    }

    #[inline(always)]
    fn unit<L: Lanes>(lanes: L, block: &[u8], _: usize) -> [L::Floats; 2] {
        let nibbles = at(block, 2);
        [lanes.nibbles(nibbles, false, 8), lanes.nibbles(nibbles, true, 8)]
    }
}

#[derive(Debug)]
pub(super) struct Q5_0;

impl Format for Q5_0 {
    const BYTES: usize = 22;
    const UNITS: usize = 1;
    const SCALING: Scaling = Scaling::Block;

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> [f32; WIDTH] {
        first_half(lanes, block)
    }

    #[inline(always)]
    fn unit<L: Lanes>(lanes: L, block: &[u8], _: usize) -> [L::Floats; 2] {
        let fifth = u32::from_le_bytes(*at(block, 2));
        let mut bits = [0; 32];
        for (i, bit) in bits.iter_mut().enumerate() {
            *bit = if fifth >> i & 1 == 1 { 16 } else { 0 };
        }
        let low = lanes.split_nibbles(at(block, 6));
        lanes.widen(lanes.minus(lanes.or(low, lanes.bytes(&bits)), 16))
    }
}

/// The scales and the minima of Q4_K and Q5_K.
#[inline(always)]
fn packed_scales(block: &[u8]) -> [u8; WIDTH] {
    let word = |from: usize| u32::from_le_bytes(*at(block, from));
    let words = [word(4), word(8), word(12)];
    let (six, four, two) = (0x3f3f_3f3f, 0x0f0f_0f0f, 0x0303_0303);
    let packed = [
        words[0] & six,
        words[2] & four | (words[0] >> 6 & two) << 4,
        words[1] & six,
        words[2] >> 4 & four | (words[1] >> 6 & two) << 4,
    ];
    let mut bytes = [0; WIDTH];
    for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(packed) {
        *bytes = word.to_le_bytes();
    }
    bytes
}

/// The scales and minima of Q4_K and Q5_K, times those of the block.
#[inline(always)]
fn scales_and_minima<L: Lanes>(lanes: L, block: &[u8]) -> [f32; WIDTH] {
    let (d, minimum) = (lanes.half(*at(block, 0)), lanes.half(*at(block, 2)));
    let mut factors = [d; WIDTH];
    factors[8..].fill(minimum);
    let mut scales = [0.0; WIDTH];
    let packed = lanes.unsigned(&packed_scales(block));
    lanes.store(lanes.mul(packed, lanes.load(&factors)), &mut scales);
    scales
}

/// The integer scales and minima of Q4_K and Q5_K.
#[inline(always)]
fn integer_scales_and_minima<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales {
    let minima = packed_scales(block);
    let mut pairs = [0; WIDTH];
    pairs[..8].copy_from_slice(&lanes.pairs(*at(&minima, 0)));
    IntegerScales {
        factor: lanes.half(*at(block, 0)),
        pairs,
        minima_factor: lanes.half(*at(block, 2)),
        minima,
    }
}

#[derive(Debug)]
pub(super) struct Q4K;

impl Format for Q4K {
    const BYTES: usize = 144;
    const UNITS: usize = 8;
    const SCALING: Scaling = Scaling::UnitMinimum;

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> [f32; WIDTH] {
        scales_and_minima(lanes, block)
    }

    #[inline(always)]
    fn unit<L: Lanes>(lanes: L, block: &[u8], unit: usize) -> [L::Floats; 2] {
        let (from, high) = (16 + 32 * (unit / 2), unit % 2 == 1);
        [lanes.nibbles(at(block, from), high, 0), lanes.nibbles(at(block, from + 16), high, 0)]
    }
}

impl IntegerFormat for Q4K {
    #[inline(always)]
    fn integer_scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales {
        integer_scales_and_minima(lanes, block)
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, block: &[u8], unit: usize) -> L::Words {
        let both = lanes.unsigned_words(at(block, 16 + 32 * (unit / 2)));
        if unit.is_multiple_of(2) { lanes.low_nibbles(both) } else { lanes.high_nibbles(both) }
    }
}

#[derive(Debug)]
pub(super) struct Q5K;

impl Format for Q5K {
    const BYTES: usize = 176;
    const UNITS: usize = 8;
    const SCALING: Scaling = Scaling::UnitMinimum;

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> [f32; WIDTH] {
        scales_and_minima(lanes, block)
    }

    #[inline(always)]
    fn unit<L: Lanes>(lanes: L, block: &[u8], unit: usize) -> [L::Floats; 2] {
        lanes.widen(Self::bytes(lanes, block, unit))
    }
}

impl Q5K {
    /// The levels of a unit.
    #[inline(always)]
    fn bytes<L: Lanes>(lanes: L, block: &[u8], unit: usize) -> L::Bytes {
        let nibbles = lanes.bytes(at(block, 48 + 32 * (unit / 2)));
        let low = lanes.shift(nibbles, if unit.is_multiple_of(2) { 0 } else { -4 }, 15);
        lanes.or(low, lanes.shift(lanes.bytes(at(block, 16)), 4 - unit as i32, 16))
    }
}

impl IntegerFormat for Q5K {
    #[inline(always)]
    fn integer_scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales {
        integer_scales_and_minima(lanes, block)
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, block: &[u8], unit: usize) -> L::Words {
        lanes.signed_words(Self::bytes(lanes, block, unit))
    }
}

#[derive(Debug)]
pub(super) struct Q6K;

impl Format for Q6K {
    const BYTES: usize = 210;
    const UNITS: usize = 8;
    const SCALING: Scaling = Scaling::Half;

    #[inline(always)]
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> [f32; WIDTH] {
        let d = lanes.splat(lanes.half(*at(block, 208)));
        let mut scales = [0.0; WIDTH];
        lanes.store(lanes.mul(d, lanes.signed(at(block, 192))), &mut scales);
        scales
    }

    #[inline(always)]
    fn unit<L: Lanes>(lanes: L, block: &[u8], unit: usize) -> [L::Floats; 2] {
        lanes.widen(Self::bytes(lanes, block, unit))
    }
}

impl Q6K {
    /// The levels of a unit.
    #[inline(always)]
    fn bytes<L: Lanes>(lanes: L, block: &[u8], unit: usize) -> L::Bytes {
        let (n, group) = (unit / 4, unit % 4);
        let low = lanes.bytes(at(block, 64 * n + 32 * (group % 2)));
        let low = lanes.shift(low, if group < 2 { 0 } else { -4 }, 15);
        let high = lanes.shift(lanes.bytes(at(block, 128 + 32 * n)), 4 - 2 * group as i32, 48);
        lanes.minus(lanes.or(low, high), 32)
    }
}

impl IntegerFormat for Q6K {
    #[inline(always)]
    fn integer_scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales {
        IntegerScales {
            factor: lanes.half(*at(block, 208)),
            pairs: at::<WIDTH>(block, 192).map(|scale| pair(scale.cast_signed().into())),
            minima_factor: 0.0,
            minima: [0; WIDTH],
        }
    }

    #[inline(always)]
    fn levels<L: Lanes>(lanes: L, block: &[u8], unit: usize) -> L::Words {
        lanes.signed_words(Self::bytes(lanes, block, unit))
    }
}

#[derive(Debug)]
pub(super) struct F16;

impl Format for F16 {
    const BYTES: usize = 64;
    const UNITS: usize = 1;
    const SCALING: Scaling = Scaling::None;

    #[inline(always)]
    fn scales<L: Lanes>(_: L, _: &[u8]) -> [f32; WIDTH] {
        [1.0; WIDTH]
    }

    #[inline(always)]
    fn unit<L: Lanes>(lanes: L, block: &[u8], _: usize) -> [L::Floats; 2] {
        [lanes.halves(at(block, 0)), lanes.halves(at(block, 32))]
    }
}

#[derive(Debug)]
pub(super) struct BF16;

impl Format for BF16 {
    const BYTES: usize = 64;
    const UNITS: usize = 1;
    const SCALING: Scaling = Scaling::None;

    #[inline(always)]
    fn scales<L: Lanes>(_: L, _: &[u8]) -> [f32; WIDTH] {
        [1.0; WIDTH]
    }

    #[inline(always)]
    fn unit<L: Lanes>(lanes: L, block: &[u8], _: usize) -> [L::Floats; 2] {
        [lanes.brain_floats(at(block, 0)), lanes.brain_floats(at(block, 32))]
    }
}

/// Runs `$body` with `$format` as the type of an [`IntegerFormat`]; `$other` for other formats.
macro_rules! with_integer_format {
    ($dtype:expr, $format:ident => $body:expr, $other:expr) => {{
        use rullama_gguf::DType;
        match $dtype {
            DType::Q4_K => {
                type $format = $crate::cpu::simd::formats::Q4K;
                $body
            }
            DType::Q5_K => {
                type $format = $crate::cpu::simd::formats::Q5K;
                $body
            }
            DType::Q6_K => {
                type $format = $crate::cpu::simd::formats::Q6K;
                $body
            }
            _ => $other,
        }
    }};
}
pub(super) use with_integer_format;

/// Runs `$body` with `$format` as the type of a [`Format`] with blocks of one unit; `$other` for other formats.
macro_rules! with_unit_format {
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
pub(super) use with_unit_format;

/// Runs `$body` with `$format` as the type of a [`Format`]; `$other` for formats without one.
macro_rules! with_format {
    ($dtype:expr, $format:ident => $body:expr, $other:expr) => {
        $crate::cpu::simd::formats::with_integer_format!(
            $dtype,
            $format => $body,
            $crate::cpu::simd::formats::with_unit_format!($dtype, $format => $body, $other)
        )
    };
}
pub(super) use with_format;
