//! Vectors of 256 bits. See `x86.rs` for why this is sound.

use std::arch::{asm, x86_64::*};

use super::{Avx2, Lanes, NoBytes, Tile, WIDTH, at, four_halves, sum_8, two_blocks};

impl<const VNNI: bool> Avx2<VNNI> {
    /// Eight signed or unsigned bytes, widened by the caller, as floats.
    #[inline(always)]
    fn pair(self, words: [__m256i; 2]) -> [__m256; 2] {
        unsafe { [_mm256_cvtepi32_ps(words[0]), _mm256_cvtepi32_ps(words[1])] }
    }

    #[inline(always)]
    fn signed_16(self, bytes: __m128i) -> [__m256; 2] {
        let words = unsafe {
            [_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes))]
        };
        self.pair(words)
    }

    #[inline(always)]
    fn zip(
        self,
        a: [__m256; 2],
        b: [__m256; 2],
        f: impl Fn(__m256, __m256) -> __m256,
    ) -> [__m256; 2] {
        [f(a[0], b[0]), f(a[1], b[1])]
    }
}

impl<const VNNI: bool> Lanes for Avx2<VNNI> {
    type Floats = [__m256; 2];
    type Words = [__m256i; 2];
    type Ints = [__m256i; 2];
    type ByBytes = Self;
    type NibbleBytes = Self;
    type UnitBytes = NoBytes;
    type BlockBytes = NoBytes;
    const TILE: Tile = Tile::Medium;

    #[inline(always)]
    fn by_bytes(self) -> Option<Self> {
        Some(self)
    }

    #[inline(always)]
    fn nibble_bytes(self) -> Option<Self> {
        Some(self)
    }

    bytes_of_256_bits!();

    #[inline(always)]
    fn splat(self, x: f32) -> Self::Floats {
        [unsafe { _mm256_set1_ps(x) }; 2]
    }

    #[inline(always)]
    fn load(self, x: &[f32; WIDTH]) -> Self::Floats {
        unsafe { [_mm256_loadu_ps(x.as_ptr()), _mm256_loadu_ps(x[8..].as_ptr())] }
    }

    #[inline(always)]
    fn store(self, x: Self::Floats, out: &mut [f32; WIDTH]) {
        unsafe {
            _mm256_storeu_ps(out.as_mut_ptr(), x[0]);
            _mm256_storeu_ps(out[8..].as_mut_ptr(), x[1]);
        }
    }

    #[inline(always)]
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        self.zip(a, b, |a, b| unsafe { _mm256_add_ps(a, b) })
    }

    #[inline(always)]
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        self.zip(a, b, |a, b| unsafe { _mm256_sub_ps(a, b) })
    }

    #[inline(always)]
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        self.zip(a, b, |a, b| unsafe { _mm256_mul_ps(a, b) })
    }

    #[inline(always)]
    fn fma(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        unsafe { [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])] }
    }

    #[inline(always)]
    fn unsigned(self, bytes: &[u8; WIDTH]) -> Self::Floats {
        let words = unsafe {
            let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
            [_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes))]
        };
        self.pair(words)
    }

    #[inline(always)]
    fn signed(self, bytes: &[u8; WIDTH]) -> Self::Floats {
        self.signed_16(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn halves(self, bytes: &[u8; 2 * WIDTH]) -> Self::Floats {
        unsafe {
            let all = self.bytes(bytes);
            [
                _mm256_cvtph_ps(_mm256_castsi256_si128(all)),
                _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(all)),
            ]
        }
    }

    #[inline(always)]
    fn brain_floats(self, bytes: &[u8; 2 * WIDTH]) -> Self::Floats {
        unsafe {
            let all = self.bytes(bytes);
            let low = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(all));
            let high = _mm256_cvtepu16_epi32(_mm256_extracti128_si256::<1>(all));
            [
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(low)),
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(high)),
            ]
        }
    }

    #[inline(always)]
    fn nibbles(self, bytes: &[u8; 16], high: bool, less: u8) -> Self::Floats {
        let nibbles = unsafe {
            let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
            let bytes = if high { _mm_srli_epi16::<4>(bytes) } else { bytes };
            let nibbles = _mm_and_si128(bytes, _mm_set1_epi8(15));
            _mm_sub_epi8(nibbles, _mm_set1_epi8(less.cast_signed()))
        };
        self.signed_16(nibbles)
    }

    #[inline(always)]
    fn sum(self, x: Self::Floats) -> f32 {
        unsafe { sum_8(_mm256_add_ps(x[0], x[1])) }
    }

    #[inline(always)]
    fn widen(self, a: Self::Bytes) -> [Self::Floats; 2] {
        let halves = unsafe { [_mm256_castsi256_si128(a), _mm256_extracti128_si256::<1>(a)] };
        [self.signed_16(halves[0]), self.signed_16(halves[1])]
    }

    #[inline(always)]
    fn words(self, x: &[i16; 32]) -> Self::Words {
        unsafe {
            [_mm256_loadu_si256(x.as_ptr().cast()), _mm256_loadu_si256(x[16..].as_ptr().cast())]
        }
    }

    #[inline(always)]
    fn unsigned_words(self, bytes: &[u8; 32]) -> Self::Words {
        let (first, second) = bytes.split_at(16);
        let half = |bytes: &[u8]| unsafe { unsigned_words(bytes.first_chunk().expect("half")) };
        [half(first), half(second)]
    }

    #[inline(always)]
    fn signed_words(self, a: Self::Bytes) -> Self::Words {
        unsafe {
            [
                _mm256_cvtepi8_epi16(_mm256_castsi256_si128(a)),
                _mm256_cvtepi8_epi16(_mm256_extracti128_si256::<1>(a)),
            ]
        }
    }

    #[inline(always)]
    fn multiply_words(self, a: Self::Words, b: Self::Words) -> Self::Ints {
        let half = |a, b| unsafe { _mm256_madd_epi16(a, b) };
        [half(a[0], b[0]), half(a[1], b[1])]
    }

    #[inline(always)]
    fn low_nibbles(self, a: Self::Words) -> Self::Words {
        a.map(|a| unsafe { _mm256_and_si256(a, _mm256_set1_epi16(15)) })
    }

    #[inline(always)]
    fn high_nibbles(self, a: Self::Words) -> Self::Words {
        a.map(|a| unsafe { _mm256_srli_epi16::<4>(a) })
    }

    #[inline(always)]
    fn scale_words(self, a: Self::Words, scale: i32) -> Self::Words {
        a.map(|a| unsafe { _mm256_mullo_epi16(a, _mm256_set1_epi32(scale)) })
    }

    #[inline(always)]
    fn scale_halves(self, a: Self::Words, scales: &[i32; WIDTH], unit: usize) -> Self::Words {
        let half = |a, scale| unsafe { _mm256_mullo_epi16(a, _mm256_set1_epi32(scale)) };
        [half(a[0], scales[2 * unit]), half(a[1], scales[2 * unit + 1])]
    }

    #[inline(always)]
    fn negate(self, a: Self::Bytes, signs: u32) -> Self::Bytes {
        unsafe {
            // Every byte gets the byte of its bit.
            let spread = _mm256_setr_epi64x(
                0,
                0x0101_0101_0101_0101,
                0x0202_0202_0202_0202,
                0x0303_0303_0303_0303,
            );
            let signs = _mm256_shuffle_epi8(_mm256_set1_epi32(signs.cast_signed()), spread);
            let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
            let mask = _mm256_cmpeq_epi8(_mm256_and_si256(signs, bit), bit);
            _mm256_sub_epi8(_mm256_xor_si256(a, mask), mask)
        }
    }

    #[inline(always)]
    fn word_floats(self, a: Self::Words) -> [Self::Floats; 2] {
        a.map(|a| unsafe {
            self.pair([
                _mm256_cvtepi16_epi32(_mm256_castsi256_si128(a)),
                _mm256_cvtepi16_epi32(_mm256_extracti128_si256::<1>(a)),
            ])
        })
    }

    #[inline(always)]
    fn zero_ints(self) -> Self::Ints {
        [unsafe { _mm256_setzero_si256() }; 2]
    }

    #[inline(always)]
    fn add_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints {
        unsafe { [_mm256_add_epi32(a[0], b[0]), _mm256_add_epi32(a[1], b[1])] }
    }

    #[inline(always)]
    fn dot_words(self, a: Self::Words, b: Self::Words, sums: Self::Ints) -> Self::Ints {
        let half = |a, b, sum| unsafe { add_dots::<VNNI>(a, b, sum) };
        [half(a[0], b[0], sums[0]), half(a[1], b[1], sums[1])]
    }

    #[inline(always)]
    fn integers(self, x: Self::Floats) -> [i32; WIDTH] {
        let mut integers = [0; WIDTH];
        let (first, second) = integers.split_at_mut(8);
        unsafe {
            _mm256_storeu_si256(first.as_mut_ptr().cast(), _mm256_cvtps_epi32(x[0]));
            _mm256_storeu_si256(second.as_mut_ptr().cast(), _mm256_cvtps_epi32(x[1]));
        }
        integers
    }

    #[inline(always)]
    fn ints(self, x: &[i32; WIDTH]) -> Self::Ints {
        let half = |from: usize| unsafe { _mm256_loadu_si256(x[from..].as_ptr().cast()) };
        [half(0), half(8)]
    }

    #[inline(always)]
    fn masked(self, a: Self::Ints, mask: i32) -> Self::Ints {
        a.map(|a| unsafe { _mm256_and_si256(a, _mm256_set1_epi32(mask)) })
    }

    #[inline(always)]
    fn high_words(self, a: Self::Ints) -> Self::Ints {
        a.map(|a| unsafe { _mm256_srli_epi32::<16>(a) })
    }

    #[inline(always)]
    fn ints_of_four_blocks(self, blocks: &[u8; 72]) -> Self::Ints {
        unsafe { two_blocks(blocks) }
    }

    #[inline(always)]
    fn halves_of_four_blocks(self, blocks: &[u8; 72]) -> Self::Floats {
        unsafe {
            let halves = _mm256_castps128_ps256(four_halves(blocks));
            let four_of_each = |index| _mm256_permutevar8x32_ps(halves, hidden(index));
            [
                four_of_each(_mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1)),
                four_of_each(_mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3)),
            ]
        }
    }

    #[inline(always)]
    fn floats(self, a: Self::Ints) -> Self::Floats {
        self.pair(a)
    }
}

/// Adds the sums of two products of words each. The intrinsic of `vpdpwssd` is not used: LLVM would replace it by a product and a sum to shorten
/// the chain of sums, while it is the number of instructions that counts, since every block has its own chain.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn add_dots<const VNNI: bool>(a: __m256i, b: __m256i, mut sums: __m256i) -> __m256i {
    if !VNNI {
        return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
    }
    // SAFETY: registers in, registers out; only the level with AVX-VNNI has `VNNI`.
    unsafe {
        asm!(
            "{{vex}} vpdpwssd {sums}, {a}, {b}",
            sums = inout(ymm_reg) sums,
            a = in(ymm_reg) a,
            b = in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// The same vector, of which LLVM knows nothing: the assembly is empty.
#[target_feature(enable = "avx2")]
#[inline]
fn hidden(mut a: __m256i) -> __m256i {
    // SAFETY: the assembly is empty.
    unsafe { asm!("/* {0} */", inout(ymm_reg) a, options(pure, nomem, nostack, preserves_flags)) };
    a
}

/// Bytes widened to words, hidden: LLVM would mask bytes before, and widen them twice for their low and their high nibbles.
#[target_feature(enable = "avx2")]
#[inline]
fn unsigned_words(bytes: &[u8; 16]) -> __m256i {
    // SAFETY: reads what the reference refers to.
    hidden(_mm256_cvtepu8_epi16(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }))
}
