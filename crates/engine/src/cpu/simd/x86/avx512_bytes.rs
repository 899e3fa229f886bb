//! Kernels of K-quants in bytes with AVX-512. See `x86.rs` for why this is sound.

use std::arch::x86_64::*;

use super::{Avx512, at};
use crate::cpu::simd::block_bytes::{BlockBytes, Digits, VECTORS};

impl<const VNNI: bool> BlockBytes<__m512> for Avx512<VNNI> {
    type Levels = [__m512i; VECTORS];
    type Scales = [__m512i; 2];

    #[inline(always)]
    fn four_bits(self, nibbles: &[u8; 128]) -> Self::Levels {
        unsafe {
            let first = _mm512_loadu_si512(nibbles.as_ptr().cast());
            let second = _mm512_loadu_si512(nibbles[64..].as_ptr().cast());
            let [a, b] = eights(first, second);
            let (c, d) = (_mm512_srli_epi16::<4>(a), _mm512_srli_epi16::<4>(b));
            let low = _mm512_set1_epi8(15);
            [
                _mm512_and_si512(a, low),
                _mm512_and_si512(b, low),
                _mm512_and_si512(c, low),
                _mm512_and_si512(d, low),
            ]
        }
    }

    #[inline(always)]
    fn fifth_bits(self, levels: Self::Levels, bits: &[u8; 32]) -> Self::Levels {
        unsafe {
            let bits = twice(bits);
            // Bit `unit` becomes bit 4. Low nibbles are units 0, 0, 2, 2, with eights of units 4, 4, 6, 6 between them.
            let low = _mm512_setr_epi64(4, 0, 4, 0, 2, -2, 2, -2);
            let high = _mm512_setr_epi64(3, -1, 3, -1, 1, -3, 1, -3);
            add_bits::<16>(levels, eights(bits, bits), [low, high])
        }
    }

    #[inline(always)]
    fn sixth_bits(self, levels: Self::Levels, bits: &[u8; 64]) -> Self::Levels {
        unsafe {
            let (first, second) = (twice(at(bits, 0)), twice(at(bits, 32)));
            // Bits of low nibbles are those of units 0, 0, 1, 1, with eights of units 4, 4, 5, 5 between them.
            let low = _mm512_setr_epi64(4, 4, 4, 4, 2, 2, 2, 2);
            let high = _mm512_setr_epi64(0, 0, 0, 0, -2, -2, -2, -2);
            add_bits::<48>(levels, eights(first, second), [low, high])
        }
    }

    #[inline(always)]
    fn unit_scales(self, pairs: &[i32; 8]) -> Self::Scales {
        unsafe {
            let pairs = _mm512_castsi256_si512(_mm256_loadu_si256(pairs.as_ptr().cast()));
            let low = _mm512_setr_epi32(0, 0, 4, 4, 0, 0, 4, 4, 2, 2, 6, 6, 2, 2, 6, 6);
            let high = _mm512_setr_epi32(1, 1, 5, 5, 1, 1, 5, 5, 3, 3, 7, 7, 3, 3, 7, 7);
            [_mm512_permutexvar_epi32(low, pairs), _mm512_permutexvar_epi32(high, pairs)]
        }
    }

    #[inline(always)]
    fn half_scales(self, scales: &[u8; 16]) -> Self::Scales {
        unsafe {
            let scales = _mm512_broadcast_i32x4(_mm_loadu_si128(scales.as_ptr().cast()));
            // Of low nibbles, lane `i` of 128 bits has half units `i` and `8 + i`, of high nibbles those four after them. A scale becomes the
            // upper byte of four words.
            let zero = i64::from_le_bytes([0x80, 0, 0x80, 0, 0x80, 0, 0x80, 0]);
            let index = |first: i64| {
                let of = |half: i64| ((first + half) * 0x0100_0100_0100_0100) | zero;
                _mm512_setr_epi64(of(0), of(8), of(1), of(9), of(2), of(10), of(3), of(11))
            };
            let low = _mm512_srai_epi16::<8>(_mm512_shuffle_epi8(scales, index(0)));
            [low, _mm512_srai_epi16::<8>(_mm512_shuffle_epi8(scales, index(4)))]
        }
    }

    #[inline(always)]
    fn dot(self, levels: Self::Levels, scales: Self::Scales, digits: &Digits) -> __m512 {
        unsafe {
            let low = scaled_products(levels, scales, &digits[0]);
            let middle = scaled_products(levels, scales, &digits[1]);
            let high = scaled_products(levels, scales, &digits[2]);
            let both = _mm512_fmadd_ps(middle, _mm512_set1_ps(256.0), low);
            _mm512_fmadd_ps(high, _mm512_set1_ps(65536.0), both)
        }
    }
}

/// [`BlockBytes::dot`] of a digit.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn scaled_products(
    levels: [__m512i; VECTORS],
    scales: [__m512i; 2],
    digits: &[[i8; 64]; VECTORS],
) -> __m512 {
    let [a, b, c, d] = levels;
    // At most 63 · 2⁷ · 4 in magnitude, which is less than 2¹⁵.
    let low = _mm512_add_epi16(products(a, &digits[0]), products(b, &digits[1]));
    let high = _mm512_add_epi16(products(c, &digits[2]), products(d, &digits[3]));
    // At most 63 · 2⁷ · 4 · 2⁷ · 4, which is less than 2²⁴.
    let low = _mm512_madd_epi16(low, scales[0]);
    _mm512_cvtepi32_ps(_mm512_add_epi32(low, _mm512_madd_epi16(high, scales[1])))
}

/// The sums of two products each.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn products(levels: __m512i, digits: &[i8; 64]) -> __m512i {
    // SAFETY: reads what the reference refers to.
    _mm512_maddubs_epi16(levels, unsafe { _mm512_loadu_si512(digits.as_ptr().cast()) })
}

/// The first eight bytes of each sixteen of two vectors in turns, then the others.
#[target_feature(enable = "avx512f")]
#[inline]
fn eights(first: __m512i, second: __m512i) -> [__m512i; 2] {
    [_mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second)]
}

/// 32 bytes twice.
#[target_feature(enable = "avx512f")]
#[inline]
fn twice(bytes: &[u8; 32]) -> __m512i {
    // SAFETY: reads what the reference refers to.
    _mm512_broadcast_i64x4(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
}

/// Adds some bits of bytes that are rotated to the left, those of low nibbles and those of high ones.
#[target_feature(enable = "avx512f")]
#[inline]
fn add_bits<const MASK: i8>(
    levels: [__m512i; VECTORS],
    bits: [__m512i; 2],
    by: [__m512i; 2],
) -> [__m512i; VECTORS] {
    let mut out = levels;
    for (i, out) in out.iter_mut().enumerate() {
        let rotated = _mm512_rolv_epi64(bits[i % 2], by[i / 2]);
        *out = _mm512_or_si512(*out, _mm512_and_si512(rotated, _mm512_set1_epi8(MASK)));
    }
    out
}
