//! Formats with blocks of 256 weights whose scales are integers times those of the block.

use super::lanes::{Lanes, WIDTH};

/// A format whose `level · scale` is an integer of at most 2¹² in magnitude.
pub(super) trait IntegerFormat {
    /// Bytes of a block.
    const BYTES: usize;
    /// Whether half units have a minimum that is subtracted.
    const MINIMA: bool = false;
    /// Whether the loop over units is unrolled, which takes the compiler long: for K-quants.
    const UNROLLED: bool = false;
    /// Its levels, if kernels in bytes can multiply them.
    const BYTE_LEVELS: Option<ByteLevels> = None;
    /// A pair of equal words per scale: eight, or sixteen if each half of a unit (32 weights) has its own scale.
    type Pairs: AsRef<[i32]> + Copy;
    /// What indices in a block refer to.
    type Book: Copy;
    /// Its code book, to be fetched once per row.
    fn book() -> Self::Book;
    /// The scales of a block.
    fn scales<L: Lanes>(lanes: L, block: &[u8]) -> IntegerScales<Self::Pairs>;
    /// The levels of a unit.
    fn levels<L: Lanes>(lanes: L, book: Self::Book, block: &[u8], unit: usize) -> L::Words;
}

/// Where a block has its levels, as unsigned numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum ByteLevels {
    /// Four bits, 32 bytes for two units each, the first in the low nibbles.
    Four { nibbles: usize },
    /// And a fifth one in 32 bytes with a bit for each unit.
    Five { nibbles: usize, bits: usize },
    /// Six bits, less 32: nibbles of four units in 64 bytes each, the first two in the low ones, and two bits of each in 32 bytes; a signed
    /// byte scales half a unit.
    Six { nibbles: usize, bits: usize, scales: usize },
}

/// The scales of a block of an [`IntegerFormat`].
#[derive(Debug, Clone, Copy)]
pub(super) struct IntegerScales<Pairs> {
    /// The factor of all scales.
    pub(super) factor: f32,
    /// The scales.
    pub(super) pairs: Pairs,
    /// The factor of all minima.
    pub(super) minima_factor: f32,
    /// The minima of the first halves of units, then of the second ones.
    pub(super) minima: [u8; WIDTH],
}

impl<Pairs> IntegerScales<Pairs> {
    /// Scales without minima.
    #[inline(always)]
    pub(super) fn new(factor: f32, pairs: Pairs) -> Self {
        Self { factor, pairs, minima_factor: 0.0, minima: [0; WIDTH] }
    }
}

/// A word twice.
#[inline(always)]
pub(super) fn pair(word: i16) -> i32 {
    let bits = u32::from(word.cast_unsigned());
    (bits << 16 | bits).cast_signed()
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
            dtype => $crate::cpu::simd::code_books::with_code_book_format!(dtype, $format => $body, $other),
        }
    }};
}
pub(super) use with_integer_format;
