//! NEON, which every aarch64 processor has, with or without its dot products of bytes, which are chosen at run time.
//!
//! Soundness of the `unsafe` blocks: they call intrinsics of a feature that the target has, none of which takes a pointer. Memory is read and
//! written as arrays that are cast to vectors. [`DotProducts`] exists only inside of `run_dot`, which is called only after detection of its feature.
#![expect(unsafe_code, reason = "intrinsics of features that the target has or that are detected")]

use std::arch::{aarch64::*, asm, is_aarch64_feature_detected};

use bytemuck::cast;

use super::{
    Kernel,
    bytes::NoBytes,
    formats::at,
    lanes::{Lanes, Tile, WIDTH},
    nibble_bytes::NibbleBytes,
    unit_bytes::UnitBytes,
};

mod dot_products;

/// A feature level; a processor has some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Arrays, with which tests compare.
    #[cfg(test)]
    Plain,
    /// NEON, which every aarch64 processor has.
    Neon,
    /// FEAT_DotProd besides.
    NeonDot,
}

impl Level {
    /// The highest level of this processor.
    pub(super) fn highest() -> Self {
        if is_aarch64_feature_detected!("dotprod") { Self::NeonDot } else { Self::Neon }
    }
}

/// Runs a kernel on the highest level of this processor, up to one.
pub(super) fn run<K: Kernel>(most: Level, kernel: K) -> K::Output {
    match most.min(Level::highest()) {
        #[cfg(test)]
        Level::Plain => kernel.run(super::lanes::Plain),
        Level::Neon => kernel.run(Neon::<NoBytes>(None)),
        // SAFETY: `Level::highest` has detected the feature.
        Level::NeonDot => unsafe { run_dot(kernel) },
    }
}

#[target_feature(enable = "dotprod")]
fn run_dot<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Neon(Some(DotProducts(()))))
}

/// Vectors of 128 bits, several side by side, and kernels in bytes if there are any.
#[derive(Debug, Clone, Copy)]
struct Neon<B>(Option<B>);

/// Kernels in bytes, by dot products.
#[derive(Debug, Clone, Copy)]
struct DotProducts(());

/// Sixteen unsigned bytes as words.
#[inline(always)]
fn unsigned_words_of(bytes: uint8x16_t) -> [int16x8_t; 2] {
    unsafe {
        let words = [vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes)];
        [vreinterpretq_s16_u16(words[0]), vreinterpretq_s16_u16(words[1])]
    }
}

/// Sixteen signed bytes as words.
#[inline(always)]
fn signed_words_of(bytes: uint8x16_t) -> [int16x8_t; 2] {
    unsafe {
        let bytes = vreinterpretq_s8_u8(bytes);
        [vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)]
    }
}

/// Sixteen words as floats.
#[inline(always)]
fn floats_of([a, b]: [int16x8_t; 2]) -> [float32x4_t; 4] {
    unsafe {
        [
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(a))),
            vcvtq_f32_s32(vmovl_high_s16(a)),
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(b))),
            vcvtq_f32_s32(vmovl_high_s16(b)),
        ]
    }
}

/// Four F16, the first in the lowest bits.
#[inline(always)]
fn four_halves(bits: u64) -> float16x4_t {
    unsafe { vreinterpret_f16_u64(vcreate_u64(bits)) }
}

/// Sixteen unsigned words, widened to 32 bits.
#[inline(always)]
fn wide_words(bytes: &[u8; 2 * WIDTH]) -> [uint32x4_t; 4] {
    unsafe {
        let [a, b]: [uint16x8_t; 2] = cast(*bytes);
        [
            vmovl_u16(vget_low_u16(a)),
            vmovl_high_u16(a),
            vmovl_u16(vget_low_u16(b)),
            vmovl_high_u16(b),
        ]
    }
}

/// Adds the products of eight words, of two in each lane. Not by intrinsics: LLVM would widen words before they are scaled, and multiply 32 bits;
/// or it would shorten the chain of sums, with products of a whole block in memory.
#[inline(always)]
fn add_products(mut sums: int32x4_t, a: int16x8_t, b: int16x8_t) -> int32x4_t {
    // Registers in, registers out.
    unsafe {
        asm!(
            "smlal {sums:v}.4s, {a:v}.4h, {b:v}.4h",
            "smlal2 {sums:v}.4s, {a:v}.8h, {b:v}.8h",
            sums = inout(vreg) sums,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// Applies a function to each vector.
#[inline(always)]
fn each<T: Copy, U, const N: usize>(a: [T; N], f: impl Fn(T) -> U) -> [U; N] {
    std::array::from_fn(|i| f(a[i]))
}

/// Combines vectors pairwise.
#[inline(always)]
fn zip<T: Copy, U: Copy, const N: usize>(a: [T; N], b: [T; N], f: impl Fn(T, T) -> U) -> [U; N] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl<B: NibbleBytes<[int32x4_t; 4]> + UnitBytes<[uint8x16_t; 2]>> Lanes for Neon<B> {
    type Floats = [float32x4_t; 4];
    type Bytes = [uint8x16_t; 2];
    type Words = [int16x8_t; 4];
    type Ints = [int32x4_t; 4];
    type ByBytes = B;
    type NibbleBytes = B;
    type UnitBytes = B;
    type BlockBytes = NoBytes;
    const TILE: Tile = Tile::Medium;

    #[inline(always)]
    fn by_bytes(self) -> Option<B> {
        self.0
    }

    #[inline(always)]
    fn nibble_bytes(self) -> Option<B> {
        self.0
    }

    #[inline(always)]
    fn unit_bytes(self) -> Option<B> {
        self.0
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::Floats {
        unsafe { [vdupq_n_f32(x); 4] }
    }

    #[inline(always)]
    fn load(self, x: &[f32; WIDTH]) -> Self::Floats {
        cast(*x)
    }

    #[inline(always)]
    fn store(self, x: Self::Floats, out: &mut [f32; WIDTH]) {
        *out = cast(x);
    }

    #[inline(always)]
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        unsafe { zip(a, b, |a, b| vaddq_f32(a, b)) }
    }

    #[inline(always)]
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        unsafe { zip(a, b, |a, b| vsubq_f32(a, b)) }
    }

    #[inline(always)]
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        unsafe { zip(a, b, |a, b| vmulq_f32(a, b)) }
    }

    #[inline(always)]
    fn fma(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        unsafe { std::array::from_fn(|i| vfmaq_f32(c[i], a[i], b[i])) }
    }

    #[inline(always)]
    fn unsigned(self, bytes: &[u8; WIDTH]) -> Self::Floats {
        floats_of(unsigned_words_of(cast(*bytes)))
    }

    #[inline(always)]
    fn signed(self, bytes: &[u8; WIDTH]) -> Self::Floats {
        floats_of(signed_words_of(cast(*bytes)))
    }

    #[inline(always)]
    fn halves(self, bytes: &[u8; 2 * WIDTH]) -> Self::Floats {
        each(cast::<_, [u64; 4]>(*bytes), |bits| unsafe { vcvt_f32_f16(four_halves(bits)) })
    }

    #[inline(always)]
    fn brain_floats(self, bytes: &[u8; 2 * WIDTH]) -> Self::Floats {
        unsafe { each(wide_words(bytes), |word| vreinterpretq_f32_u32(vshlq_n_u32::<16>(word))) }
    }

    #[inline(always)]
    fn half(self, bytes: [u8; 2]) -> f32 {
        let halves = four_halves(u16::from_le_bytes(bytes).into());
        unsafe { vgetq_lane_f32::<0>(vcvt_f32_f16(halves)) }
    }

    #[inline(always)]
    fn two_halves(self, bytes: [u8; 4]) -> [f32; 2] {
        let halves = four_halves(u32::from_le_bytes(bytes).into());
        let floats = unsafe { vcvt_f32_f16(halves) };
        unsafe { [vgetq_lane_f32::<0>(floats), vgetq_lane_f32::<1>(floats)] }
    }

    #[inline(always)]
    fn strided_halves(self, blocks: &[u8], bytes: usize) -> [f32; 8] {
        let half = |block: usize| u16::from_le_bytes(*at(blocks, block * bytes));
        let halves: [[u16; 4]; 2] =
            [[half(0), half(1), half(2), half(3)], [half(4), half(5), half(6), half(7)]];
        cast(halves.map(|halves| unsafe { vcvt_f32_f16(four_halves(cast(halves))) }))
    }

    #[inline(always)]
    fn halves_of_four_blocks(self, blocks: &[u8; 72]) -> Self::Floats {
        let half = |block: usize| u16::from_le_bytes(*at(blocks, 18 * block));
        unsafe {
            let halves = vcvt_f32_f16(four_halves(cast([half(0), half(1), half(2), half(3)])));
            [
                vdupq_laneq_f32::<0>(halves),
                vdupq_laneq_f32::<1>(halves),
                vdupq_laneq_f32::<2>(halves),
                vdupq_laneq_f32::<3>(halves),
            ]
        }
    }

    #[inline(always)]
    fn bytes(self, bytes: &[u8; 32]) -> Self::Bytes {
        cast(*bytes)
    }

    #[inline(always)]
    fn split_nibbles(self, bytes: &[u8; 16]) -> Self::Bytes {
        unsafe {
            let bytes: uint8x16_t = cast(*bytes);
            [vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8::<4>(bytes)]
        }
    }

    #[inline(always)]
    fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        unsafe { zip(a, b, |a, b| vorrq_u8(a, b)) }
    }

    #[inline(always)]
    fn minus(self, a: Self::Bytes, by: u8) -> Self::Bytes {
        unsafe { each(a, |a| vsubq_u8(a, vdupq_n_u8(by))) }
    }

    #[inline(always)]
    fn shift(self, a: Self::Bytes, by: i32, mask: u8) -> Self::Bytes {
        unsafe {
            // To the right by negative counts.
            let by = vdupq_n_s8(by as i8);
            each(a, |a| vandq_u8(vshlq_u8(a, by), vdupq_n_u8(mask)))
        }
    }

    #[inline(always)]
    fn plus(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        unsafe { zip(a, b, |a, b| vaddq_u8(a, b)) }
    }

    #[inline(always)]
    fn negate(self, a: Self::Bytes, signs: u32) -> Self::Bytes {
        unsafe {
            let bit: uint8x16_t = cast([0x8040_2010_0804_0201_u64; 2]);
            let signs = vreinterpretq_u8_u32(vdupq_n_u32(signs));
            // Every byte gets the byte of its bit.
            let first: uint8x16_t = cast([0, 0x0101_0101_0101_0101_u64]);
            let spread = [first, vaddq_u8(first, vdupq_n_u8(2))];
            zip(a, spread, |a, spread| {
                let mask = vtstq_u8(vqtbl1q_u8(signs, spread), bit);
                vsubq_u8(veorq_u8(a, mask), mask)
            })
        }
    }

    #[inline(always)]
    fn eights(self, groups: [u64; 4]) -> Self::Bytes {
        cast(groups)
    }

    #[inline(always)]
    fn look_up(self, table: &[i8; 16], index: Self::Bytes) -> Self::Bytes {
        unsafe {
            let table: uint8x16_t = cast(*table);
            each(index, |index| vqtbl1q_u8(table, index))
        }
    }

    #[inline(always)]
    fn widen(self, a: Self::Bytes) -> [Self::Floats; 2] {
        each(a, |half| floats_of(signed_words_of(half)))
    }

    #[inline(always)]
    fn words(self, x: &[i16; 32]) -> Self::Words {
        cast(*x)
    }

    #[inline(always)]
    fn unsigned_words(self, bytes: &[u8; 32]) -> Self::Words {
        let [[a, b], [c, d]] = each(self.bytes(bytes), unsigned_words_of);
        [a, b, c, d]
    }

    #[inline(always)]
    fn signed_words(self, a: Self::Bytes) -> Self::Words {
        let [[a, b], [c, d]] = each(a, signed_words_of);
        [a, b, c, d]
    }

    #[inline(always)]
    fn low_nibbles(self, a: Self::Words) -> Self::Words {
        unsafe { each(a, |a| vandq_s16(a, vdupq_n_s16(15))) }
    }

    #[inline(always)]
    fn high_nibbles(self, a: Self::Words) -> Self::Words {
        unsafe { each(a, |a| vshrq_n_s16::<4>(a)) }
    }

    #[inline(always)]
    fn pairs(self, bytes: u64) -> [i32; 8] {
        unsafe {
            let words = vmovl_u8(vcreate_u8(bytes));
            cast([vzip1q_u16(words, words), vzip2q_u16(words, words)])
        }
    }

    #[inline(always)]
    fn scale_words(self, a: Self::Words, scale: i32) -> Self::Words {
        unsafe { each(a, |a| vmulq_n_s16(a, scale as i16)) }
    }

    #[inline(always)]
    fn scale_halves(self, a: Self::Words, scales: &[i32; WIDTH], unit: usize) -> Self::Words {
        unsafe {
            let (first, second) = (scales[2 * unit] as i16, scales[2 * unit + 1] as i16);
            [
                vmulq_n_s16(a[0], first),
                vmulq_n_s16(a[1], first),
                vmulq_n_s16(a[2], second),
                vmulq_n_s16(a[3], second),
            ]
        }
    }

    #[inline(always)]
    fn word_floats(self, [a, b, c, d]: Self::Words) -> [Self::Floats; 2] {
        [floats_of([a, b]), floats_of([c, d])]
    }

    #[inline(always)]
    fn zero_ints(self) -> Self::Ints {
        unsafe { [vdupq_n_s32(0); 4] }
    }

    #[inline(always)]
    fn add_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints {
        unsafe { zip(a, b, |a, b| vaddq_s32(a, b)) }
    }

    #[inline(always)]
    fn dot_words(self, a: Self::Words, b: Self::Words, sums: Self::Ints) -> Self::Ints {
        std::array::from_fn(|i| add_products(sums[i], a[i], b[i]))
    }

    #[inline(always)]
    fn integers(self, x: Self::Floats) -> [i32; WIDTH] {
        unsafe { cast(each(x, |x| vcvtnq_s32_f32(x))) }
    }

    #[inline(always)]
    fn ints(self, x: &[i32; WIDTH]) -> Self::Ints {
        cast(*x)
    }

    #[inline(always)]
    fn masked(self, a: Self::Ints, mask: i32) -> Self::Ints {
        unsafe { each(a, |a| vandq_s32(a, vdupq_n_s32(mask))) }
    }

    #[inline(always)]
    fn high_words(self, a: Self::Ints) -> Self::Ints {
        unsafe { each(a, |a| vreinterpretq_s32_u32(vshrq_n_u32::<16>(vreinterpretq_u32_s32(a)))) }
    }

    #[inline(always)]
    fn floats(self, a: Self::Ints) -> Self::Floats {
        unsafe { each(a, |a| vcvtq_f32_s32(a)) }
    }

    #[inline(always)]
    fn sum(self, [a, b, c, d]: Self::Floats) -> f32 {
        unsafe {
            let four = vaddq_f32(vaddq_f32(a, c), vaddq_f32(b, d));
            let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
            vpadds_f32(two)
        }
    }
}
