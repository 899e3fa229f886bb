//! AVX2 and AVX-512 on x86-64, chosen at run time.
//!
//! Soundness of the `unsafe` blocks: [`Avx2`] and [`Avx512`] are private to this module and exist only inside of `run_avx2`,
//! `run_avx_vnni`, `run_avx512` and `run_avx512_vnni`, which are called only after detection of their features; loads and stores go through
//! references to arrays of the vector's size; assembly is empty, or one instruction of the level on registers.
#![expect(unsafe_code, reason = "intrinsics of features that are detected at run time")]

use std::{arch::x86_64::*, sync::LazyLock};

use super::{
    Kernel,
    bytes::NoBytes,
    formats::at,
    lanes::{Lanes, Plain, Tile, WIDTH},
    nibble_bytes::NibbleBytes,
};

/// A feature level; a processor has some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// SSE2, which every x86-64 processor has.
    Plain,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-VNNI besides.
    AvxVnni,
    /// AVX-512 F, BW and VL besides AVX2, FMA and F16C.
    Avx512,
    /// AVX-512 VNNI besides.
    Avx512Vnni,
}

/// Vectors of 256 bits, with or without an instruction for dot products of integers.
#[derive(Debug, Clone, Copy)]
struct Avx2<const VNNI: bool>(());

/// Vectors of 512 bits, with or without an instruction for dot products of integers.
#[derive(Debug, Clone, Copy)]
struct Avx512<const VNNI: bool>(());

impl Level {
    pub(super) const HIGHEST: Self = Self::Avx512Vnni;
}

/// The levels of this processor, from the highest on, without [`Level::Plain`].
static LEVELS: LazyLock<Vec<Level>> = LazyLock::new(|| {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl");
    let levels = [
        (Level::Avx512Vnni, avx512 && is_x86_feature_detected!("avx512vnni")),
        (Level::Avx512, avx512),
        (Level::AvxVnni, avx2 && is_x86_feature_detected!("avxvnni")),
        (Level::Avx2, avx2),
    ];
    levels.into_iter().filter(|(_, detected)| *detected).map(|(level, _)| level).collect()
});

/// Runs a kernel on the highest level of this processor, up to one.
pub(super) fn run<K: Kernel>(most: Level, kernel: K) -> K::Output {
    match LEVELS.iter().find(|level| **level <= most).unwrap_or(&Level::Plain) {
        Level::Plain => kernel.run(Plain),
        // SAFETY: `LEVELS` has detected the features.
        Level::Avx2 => unsafe { run_avx2(kernel) },
        // SAFETY: `LEVELS` has detected the features.
        Level::AvxVnni => unsafe { run_avx_vnni(kernel) },
        // SAFETY: `LEVELS` has detected the features.
        Level::Avx512 => unsafe { run_avx512(kernel) },
        // SAFETY: `LEVELS` has detected the features.
        Level::Avx512Vnni => unsafe { run_avx512_vnni(kernel) },
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2::<false>(()))
}

#[target_feature(enable = "avxvnni,avx2,fma,f16c")]
fn run_avx_vnni<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2::<true>(()))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma,f16c")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512::<false>(()))
}

#[target_feature(enable = "avx512vnni,avx512f,avx512bw,avx512vl,avx2,fma,f16c")]
fn run_avx512_vnni<K: Kernel>(kernel: K) -> K::Output {
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

mod avx2;
mod avx2_bytes;
mod avx512;
mod avx512_bytes;

/// The 16 bytes after the F16 of blocks of 18 bytes, of two and of two.
#[target_feature(enable = "avx2")]
#[inline]
fn two_blocks(blocks: &[u8; 72]) -> [__m256i; 2] {
    let load = |block: usize| {
        let bytes: &[u8; 16] = at(blocks, 18 * block + 2);
        // SAFETY: reads what the reference refers to.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    };
    [_mm256_set_m128i(load(1), load(0)), _mm256_set_m128i(load(3), load(2))]
}

/// The F16 of four blocks of 18 bytes.
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn four_halves(blocks: &[u8; 72]) -> __m128 {
    // Loaded from where the F16 of block `i` is word `i`.
    let load = |block: usize| {
        let bytes: &[u8; 16] = at(blocks, 16 * block);
        // SAFETY: reads what the reference refers to.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    };
    let two = _mm_blend_epi16::<2>(load(0), load(1));
    _mm_cvtph_ps(_mm_blend_epi16::<8>(_mm_blend_epi16::<4>(two, load(2)), load(3)))
}

/// The sum of eight lanes, in the order of [`Lanes::sum`].
#[target_feature(enable = "avx2")]
#[inline]
fn sum_8(x: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}
