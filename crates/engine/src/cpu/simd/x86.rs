//! AVX2 and AVX-512 on x86-64, chosen at run time.
//!
//! Soundness of the `unsafe` blocks: [`Avx2`] and [`Avx512`] are private to this module and exist only inside of `run_avx2`, `run_avx512`
//! and `run_vnni`, which are called only after detection of their features; loads and stores go through references to arrays of the vector's size.
#![expect(unsafe_code, reason = "intrinsics of features that are detected at run time")]

use std::{
    arch::{asm, x86_64::*},
    sync::LazyLock,
};

use super::{
    Kernel,
    bytes::NoBytes,
    formats::at,
    lanes::{Lanes, Plain, Tile, WIDTH},
};

/// A feature level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// SSE2, which every x86-64 processor has.
    Plain,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, BW and VL besides.
    Avx512,
    /// AVX-512 VNNI besides.
    Vnni,
}

/// Vectors of 256 bits.
#[derive(Debug, Clone, Copy)]
struct Avx2(());

/// Vectors of 512 bits, with or without an instruction for dot products of integers.
#[derive(Debug, Clone, Copy)]
struct Avx512<const VNNI: bool>(());

/// The highest level of this processor.
pub(super) fn best() -> Level {
    static BEST: LazyLock<Level> = LazyLock::new(|| {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl");
        match (avx2, avx512, is_x86_feature_detected!("avx512vnni")) {
            (true, true, true) => Level::Vnni,
            (true, true, false) => Level::Avx512,
            (true, false, _) => Level::Avx2,
            (false, ..) => Level::Plain,
        }
    });
    *BEST
}

/// Runs a kernel on a level, or on the best one of this processor if that is lower.
pub(super) fn run<K: Kernel>(level: Level, kernel: K) -> K::Output {
    match level.min(best()) {
        Level::Plain => kernel.run(Plain),
        // SAFETY: `best` has detected the features.
        Level::Avx2 => unsafe { run_avx2(kernel) },
        // SAFETY: `best` has detected the features.
        Level::Avx512 => unsafe { run_avx512(kernel) },
        // SAFETY: `best` has detected the features.
        Level::Vnni => unsafe { run_vnni(kernel) },
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2(()))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma,f16c")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512::<false>(()))
}

#[target_feature(enable = "avx512vnni,avx512f,avx512bw,avx512vl,avx2,fma,f16c")]
fn run_vnni<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512::<true>(()))
}

/// Bytes in 256-bit vectors, on both levels.
macro_rules! bytes_of_256_bits {
    () => {
        type Bytes = __m256i;

        #[inline(always)]
        fn half(self, bytes: [u8; 2]) -> f32 {
            let mut bits = u32::from(u16::from_le_bytes(bytes)).cast_signed();
            unsafe {
                // Empty: LLVM would insert the half in a register of anything, and so wait for what was to be written there.
                asm!("/* {0:e} */", inout(reg) bits, options(pure, nomem, nostack, preserves_flags));
                _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)))
            }
        }

        #[inline(always)]
        fn bytes(self, bytes: &[u8; 32]) -> Self::Bytes {
            unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
        }

        #[inline(always)]
        fn strided_halves(self, blocks: &[u8], bytes: usize) -> [f32; 8] {
            let half = |block: usize| u64::from(u16::from_le_bytes(*at(blocks, block * bytes)));
            let mut words = [0; 2];
            for (four, word) in words.iter_mut().enumerate() {
                for i in 0..4 {
                    *word |= half(4 * four + i) << (16 * i);
                }
                // Empty: LLVM would insert the halves in a vector one by one.
                unsafe { asm!("/* {0} */", inout(reg) *word, options(pure, nomem, nostack, preserves_flags)) };
            }
            let mut halves = [0.0; 8];
            unsafe {
                let all = _mm_set_epi64x(words[1].cast_signed(), words[0].cast_signed());
                _mm256_storeu_ps(halves.as_mut_ptr(), _mm256_cvtph_ps(all));
            }
            halves
        }

        #[inline(always)]
        fn two_halves(self, bytes: [u8; 4]) -> [f32; 2] {
            unsafe {
                let both = _mm_cvtph_ps(_mm_cvtsi32_si128(i32::from_le_bytes(bytes)));
                [_mm_cvtss_f32(both), _mm_cvtss_f32(_mm_movehdup_ps(both))]
            }
        }

        #[inline(always)]
        fn pairs(self, bytes: u64) -> [i32; 8] {
            unsafe {
                let all = _mm256_set1_epi64x(bytes.cast_signed());
                // Of every four bytes, the second and fourth are zero.
                let index = _mm256_setr_epi8(
                    0, -1, 0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, 3, -1, 4, -1, 4, -1, 5, -1, 5,
                    -1, 6, -1, 6, -1, 7, -1, 7, -1,
                );
                let mut pairs = [0; 8];
                let shuffled = _mm256_shuffle_epi8(all, index);
                _mm256_storeu_si256(pairs.as_mut_ptr().cast(), shuffled);
                pairs
            }
        }

        #[inline(always)]
        fn in_memory<T>(self, value: &T) -> &T {
            let mut at: *const T = value;
            // The assembly is empty: the reference is still the same.
            unsafe {
                asm!("/* {0} */", inout(reg) at, options(nostack, preserves_flags, readonly));
                &*at
            }
        }

        #[inline(always)]
        fn prefetch_after(self, bytes: &[u8], distance: usize) {
            for line in (0..bytes.len()).step_by(64) {
                let at = bytes.as_ptr().wrapping_add(distance + line);
                // Prefetching an address that is not mapped does nothing.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
            }
        }

        #[inline(always)]
        fn split_nibbles(self, bytes: &[u8; 16]) -> Self::Bytes {
            unsafe {
                let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
                let both = _mm256_set_m128i(_mm_srli_epi16::<4>(bytes), bytes);
                _mm256_and_si256(both, _mm256_set1_epi8(15))
            }
        }

        #[inline(always)]
        fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
            unsafe { _mm256_or_si256(a, b) }
        }

        #[inline(always)]
        fn minus(self, a: Self::Bytes, by: u8) -> Self::Bytes {
            unsafe { _mm256_sub_epi8(a, _mm256_set1_epi8(by.cast_signed())) }
        }

        #[inline(always)]
        fn plus(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
            unsafe { _mm256_add_epi8(a, b) }
        }

        #[inline(always)]
        fn eights(self, groups: [u64; 4]) -> Self::Bytes {
            let [a, b, c, d] = groups;
            unsafe {
                _mm256_setr_epi64x(
                    a.cast_signed(),
                    b.cast_signed(),
                    c.cast_signed(),
                    d.cast_signed(),
                )
            }
        }

        #[inline(always)]
        fn look_up(self, table: &[i8; 16], index: Self::Bytes) -> Self::Bytes {
            unsafe {
                let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
                _mm256_shuffle_epi8(table, index)
            }
        }

        #[inline(always)]
        fn shift(self, a: Self::Bytes, by: i32, mask: u8) -> Self::Bytes {
            // There are no shifts of bytes; the mask clears what came from a neighbour.
            unsafe {
                let shifted = match by {
                    0.. => _mm256_sll_epi16(a, _mm_cvtsi32_si128(by)),
                    _ => _mm256_srl_epi16(a, _mm_cvtsi32_si128(-by)),
                };
                _mm256_and_si256(shifted, _mm256_set1_epi8(mask.cast_signed()))
            }
        }
    };
}

mod avx2_bytes;
mod avx512;

impl Avx2 {
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

impl Lanes for Avx2 {
    type Floats = [__m256; 2];
    type Words = [__m256i; 2];
    type Ints = [__m256i; 2];
    type ByBytes = Self;
    const TILE: Tile = Tile::Medium;

    #[inline(always)]
    fn by_bytes(self) -> Option<Self> {
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
        let half = |a, b, sum| unsafe { _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)) };
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
    fn floats(self, a: Self::Ints) -> Self::Floats {
        self.pair(a)
    }
}

/// Widened bytes, of which LLVM does not know that: it would mask bytes before, and widen them twice for their low and their high nibbles.
#[target_feature(enable = "avx2")]
#[inline]
fn unsigned_words(bytes: &[u8; 16]) -> __m256i {
    // SAFETY: reads what the reference refers to; the assembly is empty.
    unsafe {
        let mut words = _mm256_cvtepu8_epi16(_mm_loadu_si128(bytes.as_ptr().cast()));
        asm!("/* {0} */", inout(ymm_reg) words, options(pure, nomem, nostack, preserves_flags));
        words
    }
}

/// The sum of eight lanes, in the order of [`Lanes::sum`].
#[target_feature(enable = "avx2")]
#[inline]
fn sum_8(x: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}
