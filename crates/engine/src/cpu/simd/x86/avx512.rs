//! Vectors of 512 bits. See `x86.rs` for why this is sound.

use std::arch::{asm, x86_64::*};

use super::{Avx512, Lanes, NibbleBytes, NoBytes, Tile, WIDTH, at, four_halves, sum_8, two_blocks};

impl<const VNNI: bool> Lanes for Avx512<VNNI> {
    type Floats = __m512;
    type Words = __m512i;
    type Ints = __m512i;
    type ByBytes = NoBytes;
    type NibbleBytes = Self;
    type UnitBytes = NoBytes;
    type BlockBytes = Self;
    const TILE: Tile = Tile::Large;

    #[inline(always)]
    fn nibble_bytes(self) -> Option<Self> {
        Some(self)
    }

    #[inline(always)]
    fn block_bytes(self) -> Option<Self> {
        (!VNNI).then_some(self)
    }

    bytes_of_256_bits!();

    #[inline(always)]
    fn splat(self, x: f32) -> Self::Floats {
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, x: &[f32; WIDTH]) -> Self::Floats {
        unsafe { _mm512_loadu_ps(x.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, x: Self::Floats, out: &mut [f32; WIDTH]) {
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), x) }
    }

    #[inline(always)]
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn fma(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn unsigned(self, bytes: &[u8; WIDTH]) -> Self::Floats {
        unsafe {
            let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
            _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))
        }
    }

    #[inline(always)]
    fn signed(self, bytes: &[u8; WIDTH]) -> Self::Floats {
        unsafe {
            let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
            _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))
        }
    }

    #[inline(always)]
    fn halves(self, bytes: &[u8; 2 * WIDTH]) -> Self::Floats {
        unsafe { _mm512_cvtph_ps(self.bytes(bytes)) }
    }

    #[inline(always)]
    fn brain_floats(self, bytes: &[u8; 2 * WIDTH]) -> Self::Floats {
        unsafe {
            let words = _mm512_cvtepu16_epi32(self.bytes(bytes));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words))
        }
    }

    /// Looks the floats up: a permutation reads the low four bits of each lane alone.
    #[inline(always)]
    fn nibbles(self, bytes: &[u8; 16], high: bool, less: u8) -> Self::Floats {
        unsafe {
            let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
            let words = _mm512_cvtepu8_epi32(bytes);
            let index = if high { _mm512_srli_epi32::<4>(words) } else { words };
            let levels = _mm512_setr_ps(
                0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0,
                15.0,
            );
            let table = _mm512_sub_ps(levels, _mm512_set1_ps(less.into()));
            _mm512_permutexvar_ps(index, table)
        }
    }

    #[inline(always)]
    fn sum(self, x: Self::Floats) -> f32 {
        unsafe {
            let high = _mm256_castsi256_ps(_mm512_extracti64x4_epi64::<1>(_mm512_castps_si512(x)));
            sum_8(_mm256_add_ps(_mm512_castps512_ps256(x), high))
        }
    }

    #[inline(always)]
    fn widen(self, a: Self::Bytes) -> [Self::Floats; 2] {
        let floats = |bytes| unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)) };
        unsafe { [floats(_mm256_castsi256_si128(a)), floats(_mm256_extracti128_si256::<1>(a))] }
    }

    #[inline(always)]
    fn words(self, x: &[i16; 32]) -> Self::Words {
        unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
    }

    /// In words: what is widened serves several units.
    #[inline(always)]
    fn levels(
        self,
        (nibbles, high): (&[u8; 32], bool),
        (bits, by, mask): (&[u8; 32], i32, u8),
        less: u8,
    ) -> Self::Words {
        unsafe {
            let (both, bits) = (unsigned_words(nibbles), unsigned_words(bits));
            let low = if high { self.high_nibbles(both) } else { self.low_nibbles(both) };
            let bits = match by {
                0.. => _mm512_sll_epi16(bits, _mm_cvtsi32_si128(by)),
                _ => _mm512_srl_epi16(bits, _mm_cvtsi32_si128(-by)),
            };
            let bits = _mm512_and_si512(bits, _mm512_set1_epi16(mask.into()));
            _mm512_sub_epi16(_mm512_or_si512(low, bits), _mm512_set1_epi16(less.into()))
        }
    }

    #[inline(always)]
    fn unsigned_words(self, bytes: &[u8; 32]) -> Self::Words {
        unsafe { unsigned_words(bytes) }
    }

    #[inline(always)]
    fn signed_words(self, a: Self::Bytes) -> Self::Words {
        unsafe { _mm512_cvtepi8_epi16(a) }
    }

    #[inline(always)]
    fn multiply_words(self, a: Self::Words, b: Self::Words) -> Self::Ints {
        unsafe { _mm512_madd_epi16(a, b) }
    }

    #[inline(always)]
    fn low_nibbles(self, a: Self::Words) -> Self::Words {
        unsafe { _mm512_and_si512(a, _mm512_set1_epi16(15)) }
    }

    #[inline(always)]
    fn high_nibbles(self, a: Self::Words) -> Self::Words {
        unsafe { _mm512_srli_epi16::<4>(a) }
    }

    #[inline(always)]
    fn scale_words(self, a: Self::Words, scale: i32) -> Self::Words {
        unsafe { _mm512_mullo_epi16(a, _mm512_set1_epi32(scale)) }
    }

    #[inline(always)]
    fn scale_halves(self, a: Self::Words, scales: &[i32; WIDTH], unit: usize) -> Self::Words {
        unsafe {
            let first = _mm512_set1_epi32(2 * unit as i32);
            let index = _mm512_mask_set1_epi32(first, 0xFF00, 2 * unit as i32 + 1);
            let scales = _mm512_loadu_si512(scales.as_ptr().cast());
            _mm512_mullo_epi16(a, _mm512_permutexvar_epi32(index, scales))
        }
    }

    #[inline(always)]
    fn negate(self, a: Self::Bytes, signs: u32) -> Self::Bytes {
        unsafe { _mm256_mask_sub_epi8(a, signs, _mm256_setzero_si256(), a) }
    }

    #[inline(always)]
    fn word_floats(self, a: Self::Words) -> [Self::Floats; 2] {
        let floats = |words| unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(words)) };
        unsafe { [floats(_mm512_castsi512_si256(a)), floats(_mm512_extracti64x4_epi64::<1>(a))] }
    }

    #[inline(always)]
    fn zero_ints(self) -> Self::Ints {
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn add_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints {
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    fn dot_words(self, a: Self::Words, b: Self::Words, sums: Self::Ints) -> Self::Ints {
        unsafe {
            match VNNI {
                true => dot_words_vnni(a, b, sums),
                false => _mm512_add_epi32(sums, _mm512_madd_epi16(a, b)),
            }
        }
    }

    #[inline(always)]
    fn integers(self, x: Self::Floats) -> [i32; WIDTH] {
        let mut integers = [0; WIDTH];
        unsafe { _mm512_storeu_si512(integers.as_mut_ptr().cast(), _mm512_cvtps_epi32(x)) };
        integers
    }

    #[inline(always)]
    fn ints(self, x: &[i32; WIDTH]) -> Self::Ints {
        unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
    }

    #[inline(always)]
    fn masked(self, a: Self::Ints, mask: i32) -> Self::Ints {
        unsafe { _mm512_and_si512(a, _mm512_set1_epi32(mask)) }
    }

    #[inline(always)]
    fn high_words(self, a: Self::Ints) -> Self::Ints {
        unsafe { _mm512_srli_epi32::<16>(a) }
    }

    #[inline(always)]
    fn ints_of_four_blocks(self, blocks: &[u8; 72]) -> Self::Ints {
        unsafe {
            let [low, high] = two_blocks(blocks);
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
        }
    }

    #[inline(always)]
    fn halves_of_four_blocks(self, blocks: &[u8; 72]) -> Self::Floats {
        unsafe {
            let halves = _mm512_castps128_ps512(four_halves(blocks));
            let index = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
            _mm512_permutexvar_ps(index, halves)
        }
    }

    #[inline(always)]
    fn floats(self, a: Self::Ints) -> Self::Floats {
        unsafe { _mm512_cvtepi32_ps(a) }
    }
}

impl<const VNNI: bool> NibbleBytes<__m512i> for Avx512<VNNI> {
    #[inline(always)]
    fn nibbles(self, bytes: __m512i) -> [__m512i; 2] {
        let low = |bytes| unsafe { _mm512_and_si512(bytes, _mm512_set1_epi8(15)) };
        [low(bytes), low(unsafe { _mm512_srli_epi16::<4>(bytes) })]
    }

    #[inline(always)]
    fn add_dots(self, levels: [__m512i; 2], digits: &[[i8; 64]; 2], sums: __m512i) -> __m512i {
        unsafe {
            let [first, second] = digits.each_ref().map(|x| _mm512_loadu_si512(x.as_ptr().cast()));
            match VNNI {
                true => {
                    let sums = dot_bytes_vnni(levels[0], first, sums);
                    dot_bytes_vnni(levels[1], second, sums)
                }
                false => {
                    let first = _mm512_maddubs_epi16(levels[0], first);
                    let words = _mm512_add_epi16(first, _mm512_maddubs_epi16(levels[1], second));
                    _mm512_add_epi32(sums, _mm512_madd_epi16(words, _mm512_set1_epi16(1)))
                }
            }
        }
    }

    #[inline(always)]
    fn join(self, high: __m512i, low: __m512i) -> __m512i {
        unsafe { _mm512_add_epi32(_mm512_slli_epi32::<8>(high), low) }
    }
}

/// `vpdpbusd`
#[target_feature(enable = "avx512vnni,avx512f")]
#[inline]
fn dot_bytes_vnni(levels: __m512i, digits: __m512i, sums: __m512i) -> __m512i {
    _mm512_dpbusd_epi32(sums, levels, digits)
}

/// `vpdpwssd`, without the intrinsic: LLVM would replace that by a product and a sum to shorten the chain of sums, while it is the number of
/// instructions that counts, since every block has its own chain.
#[target_feature(enable = "avx512vnni,avx512f")]
#[inline]
fn dot_words_vnni(a: __m512i, b: __m512i, mut sums: __m512i) -> __m512i {
    // SAFETY: registers in, registers out.
    unsafe {
        asm!(
            "vpdpwssd {sums}, {a}, {b}",
            sums = inout(zmm_reg) sums,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// Bytes widened to words, hidden: LLVM would mask bytes before, and widen them twice for their low and their high nibbles.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn unsigned_words(bytes: &[u8; 32]) -> __m512i {
    // SAFETY: reads what the reference refers to; the assembly is empty.
    unsafe {
        let mut words = _mm512_cvtepu8_epi16(_mm256_loadu_si256(bytes.as_ptr().cast()));
        asm!("/* {0} */", inout(zmm_reg) words, options(pure, nomem, nostack, preserves_flags));
        words
    }
}
