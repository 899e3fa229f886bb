//! Formats with blocks of 256 weights whose scales are integers times those of the block.

use super::lanes::{Lanes, WIDTH};

/// A format whose `level · scale` is an integer of at most 2¹² in magnitude.
pub(super) trait IntegerFormat {
    /// Bytes of a block.
    const BYTES: usize;
    /// Whether each half of a unit (32 weights) has its own scale.
    const HALF_SCALES: bool;
    /// Whether half units have a minimum that is subtracted.
    const MINIMA: bool = false;
    /// Whether the loop over units is unrolled, which takes the compiler long: for the formats most models have.
    const UNROLLED: bool = false;
    /// What indices in a block refer to.
    type Book: Copy;
    /// Its code book, to be fetched once per row.
    fn book() -> Self::Book;
    /// The scales of a block.
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales;
    /// The levels of a unit.
    fn levels<L: Lanes>(lanes: L, book: Self::Book, block: &[u8], unit: usize) -> L::Words;
}

/// The scales of a block of an [`IntegerFormat`].
pub(super) struct IntegerScales {
    /// The factor of all scales.
    pub(super) factor: f32,
    /// Of each half unit, or of each unit (then only the first eight), a pair of equal words.
    pub(super) pairs: [i32; WIDTH],
    /// The factor of all minima.
    pub(super) minima_factor: f32,
    /// The minima of the half units.
    pub(super) minima: [u8; WIDTH],
}

impl IntegerScales {
    /// Scales without minima.
    #[inline(always)]
    pub(super) fn new(factor: f32, pairs: [i32; WIDTH]) -> Self {
        Self { factor, pairs, minima_factor: 0.0, minima: [0; WIDTH] }
    }
}

/// A word twice.
#[inline(always)]
pub(super) fn pair(word: i16) -> i32 {
    let bits = u32::from(word.cast_unsigned());
    (bits << 16 | bits).cast_signed()
}

/// Eight scales of units.
#[cfg(any(test, not(target_arch = "wasm32")))]
#[inline(always)]
pub(super) fn unit_pairs(scale: impl Fn(usize) -> i16) -> [i32; WIDTH] {
    let mut pairs = [0; WIDTH];
    for (unit, out) in pairs[..8].iter_mut().enumerate() {
        *out = pair(scale(unit));
    }
    pairs
}

/// Runs `$body` with `$format` as the type of an [`IntegerFormat`]; `$other` for other formats.
macro_rules! with_integer_format {
    ($dtype:expr, $format:ident => $body:expr, $other:expr) => {{
        use rullama_gguf::DType;
        match $dtype {
            DType::Q2_K => {
                type $format = $crate::cpu::simd::k_quants::Q2K;
                $body
            }
            DType::Q3_K => {
                type $format = $crate::cpu::simd::k_quants::Q3K;
                $body
            }
            DType::Q4_K => {
                type $format = $crate::cpu::simd::k_quants::Q4K;
                $body
            }
            DType::Q5_K => {
                type $format = $crate::cpu::simd::k_quants::Q5K;
                $body
            }
            DType::Q6_K => {
                type $format = $crate::cpu::simd::k_quants::Q6K;
                $body
            }
            dtype => $crate::cpu::simd::integer_format::with_code_book_format!(dtype, $format => $body, $other),
        }
    }};
}
pub(super) use with_integer_format;

/// The same of formats with code books or ternary levels.
#[cfg(any(test, not(target_arch = "wasm32")))]
macro_rules! with_code_book_format {
    ($dtype:expr, $format:ident => $body:expr, $other:expr) => {
        match $dtype {
            DType::IQ4_XS => {
                type $format = $crate::cpu::simd::code_books::Iq4Xs;
                $body
            }
            DType::IQ3_S => {
                type $format = $crate::cpu::simd::code_books::Iq3S;
                $body
            }
            DType::IQ3_XXS => {
                type $format = $crate::cpu::simd::code_books::Iq3Xxs;
                $body
            }
            DType::IQ2_S => {
                type $format = $crate::cpu::simd::code_books::Iq2S;
                $body
            }
            DType::IQ2_XS => {
                type $format = $crate::cpu::simd::code_books::Iq2Xs;
                $body
            }
            DType::IQ2_XXS => {
                type $format = $crate::cpu::simd::code_books::Iq2Xxs;
                $body
            }
            DType::IQ1_S => {
                type $format = $crate::cpu::simd::code_books::Iq1S;
                $body
            }
            DType::IQ1_M => {
                type $format = $crate::cpu::simd::code_books::Iq1M;
                $body
            }
            DType::TQ2_0 => {
                type $format = $crate::cpu::simd::ternary::Tq2;
                $body
            }
            DType::TQ1_0 => {
                type $format = $crate::cpu::simd::ternary::Tq1;
                $body
            }
            _ => $other,
        }
    };
}

/// Modules that pages fetch have no kernels for them: models small enough for a CPU in a page lose too much by them.
#[cfg(all(target_arch = "wasm32", not(test)))]
macro_rules! with_code_book_format {
    ($dtype:expr, $format:ident => $body:expr, $other:expr) => {{
        let _ = $dtype;
        $other
    }};
}
pub(super) use with_code_book_format;
