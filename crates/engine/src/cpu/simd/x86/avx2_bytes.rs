//! Kernels in bytes with AVX2. See `x86.rs` for why this is sound.

use std::arch::{asm, x86_64::*};

use super::{Avx2, Lanes, avx2::add_dots, sum_8};
use crate::cpu::simd::{bytes::ByteLanes, nibble_bytes::NibbleBytes};

impl<const VNNI: bool> ByteLanes for Avx2<VNNI> {
    type Levels = __m256i;
    type Scales = __m256i;
    /// Pairs of equal words.
    type UnitScales = [i32; 8];
    type HalfScales = __m256i;
    /// Of each digit. A lane of a unit has at most 63 · 2⁷ · 2⁷ · 4, of which eight fit; before scaling at most 63 · 2⁷ · 2, which fits 16 bits.
    type Sums = [__m256i; 3];
    type Floats = __m256;

    #[inline(always)]
    fn nibbles(self, bytes: &[u8; 32], high: bool) -> Self::Levels {
        unsafe {
            let both = _mm256_loadu_si256(bytes.as_ptr().cast());
            let shifted = if high { _mm256_srli_epi16::<4>(both) } else { both };
            _mm256_and_si256(shifted, _mm256_set1_epi8(15))
        }
    }

    #[inline(always)]
    fn add_bits(self, levels: Self::Levels, bytes: &[u8; 32], by: i32, mask: u8) -> Self::Levels {
        unsafe { _mm256_or_si256(levels, self.shift(self.bytes(bytes), by, mask)) }
    }

    #[inline(always)]
    fn zero_sums(self) -> Self::Sums {
        [unsafe { _mm256_setzero_si256() }; 3]
    }

    #[inline(always)]
    fn zero_floats(self) -> Self::Floats {
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    fn unit_scales(self, pairs: &[i32; 8]) -> Self::UnitScales {
        *pairs
    }

    #[inline(always)]
    fn unit_scale(self, scales: &Self::UnitScales, unit: usize) -> Self::Scales {
        unsafe { _mm256_set1_epi32(scales[unit]) }
    }

    /// Words: those of first halves, then those of second ones.
    #[inline(always)]
    fn half_scales(self, scales: &[u8; 16]) -> Self::HalfScales {
        unsafe {
            let order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
            let scales = _mm_loadu_si128(scales.as_ptr().cast());
            _mm256_cvtepi8_epi16(_mm_shuffle_epi8(scales, order))
        }
    }

    #[inline(always)]
    fn scales_of(self, scales: Self::HalfScales, unit: usize) -> Self::Scales {
        let word = (0x0100 + 0x0202 * unit) as i16;
        unsafe { _mm256_shuffle_epi8(scales, _mm256_set1_epi16(word)) }
    }

    #[inline(always)]
    fn add_products(
        self,
        levels: Self::Levels,
        digits: [&[i8; 32]; 3],
        scales: Self::Scales,
        mut sums: Self::Sums,
    ) -> Self::Sums {
        for (sums, digits) in sums.iter_mut().zip(digits) {
            *sums = unsafe { add_products::<VNNI>(levels, digits, scales, *sums) };
        }
        sums
    }

    #[inline(always)]
    fn add_block(self, sums: Self::Sums, factor: f32, total: Self::Floats) -> Self::Floats {
        unsafe {
            let [low, middle, high] = sums;
            let (low, middle) = (_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(middle));
            let both = _mm256_fmadd_ps(middle, _mm256_set1_ps(256.0), low);
            let all = _mm256_fmadd_ps(_mm256_cvtepi32_ps(high), _mm256_set1_ps(65536.0), both);
            _mm256_fmadd_ps(_mm256_set1_ps(factor), all, total)
        }
    }

    #[inline(always)]
    fn subtract_minima(
        self,
        minima: &[u8; 8],
        factor: f32,
        x: &[f32; 8],
        total: Self::Floats,
    ) -> Self::Floats {
        unsafe {
            let minima = _mm256_cvtepu8_epi32(_mm_loadl_epi64(minima.as_ptr().cast()));
            let minima = _mm256_mul_ps(_mm256_cvtepi32_ps(minima), _mm256_set1_ps(factor));
            _mm256_fnmadd_ps(minima, _mm256_loadu_ps(x.as_ptr()), total)
        }
    }

    #[inline(always)]
    fn subtract_offsets(
        self,
        scales: &[u8; 16],
        factor: f32,
        x: &[f32; 16],
        mut total: Self::Floats,
    ) -> Self::Floats {
        unsafe {
            for (scales, x) in scales.as_chunks::<8>().0.iter().zip(x.as_chunks::<8>().0) {
                let scales = _mm256_cvtepi8_epi32(_mm_loadl_epi64(scales.as_ptr().cast()));
                let scales = _mm256_mul_ps(_mm256_cvtepi32_ps(scales), _mm256_set1_ps(factor));
                total = _mm256_fnmadd_ps(scales, _mm256_loadu_ps(x.as_ptr()), total);
            }
            total
        }
    }

    #[inline(always)]
    fn sum(self, total: Self::Floats) -> f32 {
        unsafe { sum_8(total) }
    }
}

impl<const VNNI: bool> NibbleBytes<[__m256i; 2]> for Avx2<VNNI> {
    #[inline(always)]
    fn nibbles(self, bytes: [__m256i; 2]) -> [[__m256i; 2]; 2] {
        let low = |bytes| unsafe { _mm256_and_si256(bytes, _mm256_set1_epi8(15)) };
        [bytes.map(low), bytes.map(|bytes| low(unsafe { _mm256_srli_epi16::<4>(bytes) }))]
    }

    #[inline(always)]
    fn add_dots(
        self,
        levels: [[__m256i; 2]; 2],
        digits: &[[i8; 64]; 2],
        sums: [__m256i; 2],
    ) -> [__m256i; 2] {
        let half = |half: usize| unsafe {
            let load = |i: usize| _mm256_loadu_si256(digits[i][32 * half..].as_ptr().cast());
            add_dots_of_bytes::<VNNI>(
                [levels[0][half], levels[1][half]],
                [load(0), load(1)],
                sums[half],
            )
        };
        [half(0), half(1)]
    }

    #[inline(always)]
    fn join(self, high: [__m256i; 2], low: [__m256i; 2]) -> [__m256i; 2] {
        let half = |high, low| unsafe { _mm256_add_epi32(_mm256_slli_epi32::<8>(high), low) };
        [half(high[0], low[0]), half(high[1], low[1])]
    }
}

/// [`NibbleBytes::add_dots`] of half the lanes.
#[target_feature(enable = "avx2")]
#[inline]
fn add_dots_of_bytes<const VNNI: bool>(
    levels: [__m256i; 2],
    digits: [__m256i; 2],
    mut sums: __m256i,
) -> __m256i {
    if !VNNI {
        let first = _mm256_maddubs_epi16(levels[0], digits[0]);
        let words = _mm256_add_epi16(first, _mm256_maddubs_epi16(levels[1], digits[1]));
        return _mm256_add_epi32(sums, _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
    }
    for (levels, digits) in levels.into_iter().zip(digits) {
        // SAFETY: registers in, registers out; only the level with AVX-VNNI has `VNNI`.
        unsafe {
            asm!(
                "{{vex}} vpdpbusd {sums}, {levels}, {digits}",
                sums = inout(ymm_reg) sums,
                levels = in(ymm_reg) levels,
                digits = in(ymm_reg) digits,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
    }
    sums
}

/// [`ByteLanes::add_products`] of a digit. The assembly is empty: LLVM would unpack all levels of a block before it multiplies the first, and keep them in
/// memory.
#[target_feature(enable = "avx2")]
#[inline]
fn add_products<const VNNI: bool>(
    levels: __m256i,
    digits: &[i8; 32],
    scales: __m256i,
    sums: __m256i,
) -> __m256i {
    // SAFETY: reads what the reference refers to.
    unsafe {
        let digits = _mm256_loadu_si256(digits.as_ptr().cast());
        let words = _mm256_maddubs_epi16(levels, digits);
        let mut sums = add_dots::<VNNI>(words, scales, sums);
        asm!("/* {0} */", inout(ymm_reg) sums, options(nomem, nostack, preserves_flags));
        sums
    }
}
