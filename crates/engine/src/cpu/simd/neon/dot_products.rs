//! Kernels in bytes with `sdot`, which adds four products of signed bytes to each lane of 32 bits. See `neon.rs` for why this is sound.
//!
//! The digits of an activation are joined before a sum is scaled: the sum of the highest digit's products, times 2⁸, is what those of the next
//! digit are added to. That takes a shift per digit and one conversion, where sums of each digit would take a product with the scale each, and a
//! sum to start from.

use std::arch::{aarch64::*, asm};

use bytemuck::{cast, cast_ref};

use super::DotProducts;
use crate::cpu::simd::{bytes::ByteLanes, nibble_bytes::NibbleBytes, unit_bytes::UnitBytes};

/// What the products of a unit are multiplied with.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scales {
    Unit(f32),
    Halves([f32; 2]),
}

impl ByteLanes for DotProducts {
    type Levels = [uint8x16_t; 2];
    type Scales = Scales;
    type UnitScales = [f32; 8];
    type HalfScales = [f32; 16];
    type Sums = float32x4_t;
    type Floats = float32x4_t;

    #[inline(always)]
    fn nibbles(self, bytes: &[u8; 32], high: bool) -> Self::Levels {
        let bytes: [uint8x16_t; 2] = cast(*bytes);
        bytes.map(|bytes| unsafe {
            if high { vshrq_n_u8::<4>(bytes) } else { vandq_u8(bytes, vdupq_n_u8(15)) }
        })
    }

    #[inline(always)]
    fn add_bits(self, levels: Self::Levels, bytes: &[u8; 32], by: i32, mask: u8) -> Self::Levels {
        let bytes: [uint8x16_t; 2] = cast(*bytes);
        // To the right by negative counts.
        let bits = bytes.map(|bytes| unsafe {
            vandq_u8(vshlq_u8(bytes, vdupq_n_s8(by as i8)), vdupq_n_u8(mask))
        });
        unsafe { [vorrq_u8(levels[0], bits[0]), vorrq_u8(levels[1], bits[1])] }
    }

    #[inline(always)]
    fn zero_sums(self) -> Self::Sums {
        self.zero_floats()
    }

    #[inline(always)]
    fn zero_floats(self) -> Self::Floats {
        unsafe { vdupq_n_f32(0.0) }
    }

    #[inline(always)]
    fn unit_scales(self, pairs: &[i32; 8]) -> Self::UnitScales {
        let pairs: [int32x4_t; 2] = cast(*pairs);
        cast(pairs.map(|pairs| unsafe { vcvtq_f32_s32(vandq_s32(pairs, vdupq_n_s32(0xFFFF))) }))
    }

    #[inline(always)]
    fn unit_scale(self, scales: &Self::UnitScales, unit: usize) -> Self::Scales {
        Scales::Unit(scales[unit])
    }

    #[inline(always)]
    fn half_scales(self, scales: &[u8; 16]) -> Self::HalfScales {
        cast(signed_floats(scales))
    }

    #[inline(always)]
    fn scales_of(self, scales: Self::HalfScales, unit: usize) -> Self::Scales {
        Scales::Halves([scales[2 * unit], scales[2 * unit + 1]])
    }

    /// Sums of a lane have eight products of five bits, or four of six, and activations are less than 2²³ - 2¹⁶ in magnitude: at most
    /// 8 · 31 · (2²³ - 2¹⁶) or 4 · 63 · (2²³ - 2¹⁶), which are less than 2³¹.
    #[inline(always)]
    fn add_products(
        self,
        levels: Self::Levels,
        digits: [&[i8; 32]; 3],
        scales: Self::Scales,
        sums: Self::Sums,
    ) -> Self::Sums {
        let digits = digits.map(|digits| *cast_ref::<_, [int8x16_t; 2]>(digits));
        let half = |half: usize| {
            joined(|digit, sum| unsafe { sdot(sum, levels[half], digits[digit][half]) })
        };
        unsafe {
            match scales {
                Scales::Unit(scale) => {
                    let both = joined(|digit, sum| {
                        let first = sdot(sum, levels[0], digits[digit][0]);
                        sdot(first, levels[1], digits[digit][1])
                    });
                    vfmaq_n_f32(sums, both, scale)
                }
                Scales::Halves([first, second]) => {
                    vfmaq_n_f32(vfmaq_n_f32(sums, half(0), first), half(1), second)
                }
            }
        }
    }

    #[inline(always)]
    fn add_block(self, sums: Self::Sums, factor: f32, total: Self::Floats) -> Self::Floats {
        unsafe { vfmaq_n_f32(total, sums, factor) }
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
            let words = vmovl_u8(cast(*minima));
            let (low, high) = (vmovl_u16(vget_low_u16(words)), vmovl_high_u16(words));
            let [first, second]: [float32x4_t; 2] = cast(*x);
            let sum = vfmaq_f32(vmulq_f32(vcvtq_f32_u32(low), first), vcvtq_f32_u32(high), second);
            vfmsq_n_f32(total, sum, factor)
        }
    }

    #[inline(always)]
    fn subtract_offsets(
        self,
        scales: &[u8; 16],
        factor: f32,
        x: &[f32; 16],
        total: Self::Floats,
    ) -> Self::Floats {
        let x: [float32x4_t; 4] = cast(*x);
        let scales = signed_floats(scales);
        unsafe {
            let mut sum = vmulq_f32(scales[0], x[0]);
            for i in 1..4 {
                sum = vfmaq_f32(sum, scales[i], x[i]);
            }
            vfmsq_n_f32(total, sum, factor)
        }
    }

    #[inline(always)]
    fn sum(self, total: Self::Floats) -> f32 {
        unsafe { vaddvq_f32(total) }
    }
}

impl NibbleBytes<[int32x4_t; 4]> for DotProducts {
    #[inline(always)]
    fn nibbles(self, bytes: [int32x4_t; 4]) -> [[int32x4_t; 4]; 2] {
        let bytes: [uint8x16_t; 4] = cast(bytes);
        unsafe {
            [
                cast(bytes.map(|bytes| vandq_u8(bytes, vdupq_n_u8(15)))),
                cast(bytes.map(|bytes| vshrq_n_u8::<4>(bytes))),
            ]
        }
    }

    #[inline(always)]
    fn add_dots(
        self,
        levels: [[int32x4_t; 4]; 2],
        digits: &[[i8; 64]; 2],
        mut sums: [int32x4_t; 4],
    ) -> [int32x4_t; 4] {
        for (levels, digits) in levels.into_iter().zip(digits) {
            let (levels, digits): ([uint8x16_t; 4], [int8x16_t; 4]) = (cast(levels), cast(*digits));
            for (sum, (levels, digits)) in sums.iter_mut().zip(levels.into_iter().zip(digits)) {
                *sum = unsafe { sdot(*sum, levels, digits) };
            }
        }
        sums
    }

    #[inline(always)]
    fn join(self, high: [int32x4_t; 4], low: [int32x4_t; 4]) -> [int32x4_t; 4] {
        std::array::from_fn(|i| unsafe { vaddq_s32(vshlq_n_s32::<8>(high[i]), low[i]) })
    }

    /// Digits are joined one after the other, which saves sums that start from zero.
    #[inline(always)]
    fn add_digits(
        self,
        levels: [[int32x4_t; 4]; 2],
        digits: &[[[i8; 64]; 2]; 3],
        sums: [[int32x4_t; 4]; 3],
    ) -> [int32x4_t; 4] {
        let high = self.add_dots(levels, &digits[2], sums[2]);
        let middle = self.add_dots(levels, &digits[1], self.join(high, sums[1]));
        self.join(middle, self.add_dots(levels, &digits[0], sums[0]))
    }
}

impl UnitBytes<[uint8x16_t; 2]> for DotProducts {
    /// A lane's sum of eight products of 2⁷ and two digits is at most 8 · 2⁷ · 2¹⁵. With three digits, 2³³ would not fit: the lowest one's sum is
    /// converted alone.
    #[inline(always)]
    fn add_unit(
        self,
        levels: [uint8x16_t; 2],
        digits: [&[i8; 32]; 3],
        scale: f32,
        sums: Self::Sums,
    ) -> Self::Sums {
        let digits = digits.map(|digits| *cast_ref::<_, [int8x16_t; 2]>(digits));
        unsafe {
            let add_products = |digit: usize, sum| {
                sdot(sdot(sum, levels[0], digits[digit][0]), levels[1], digits[digit][1])
            };
            let zero = vdupq_n_s32(0);
            let high = add_products(1, vshlq_n_s32::<8>(add_products(2, zero)));
            let low = vcvtq_f32_s32(add_products(0, zero));
            let both = vfmaq_n_f32(low, vcvtq_f32_s32(high), 256.0);
            vfmaq_n_f32(sums, both, scale)
        }
    }
}

/// Signed bytes as floats.
#[inline(always)]
fn signed_floats(bytes: &[u8; 16]) -> [float32x4_t; 4] {
    unsafe {
        let bytes: int8x16_t = cast(*bytes);
        let words = [vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)];
        let floats = |words: int16x8_t| {
            [vcvtq_f32_s32(vmovl_s16(vget_low_s16(words))), vcvtq_f32_s32(vmovl_high_s16(words))]
        };
        cast(words.map(floats))
    }
}

/// `2¹⁶ · sums of digit 2 + 2⁸ · sums of digit 1 + sums of digit 0` as floats, where a function adds the products of a digit to sums. They fit 32
/// bits, so that sums on the way to them may wrap.
#[inline(always)]
fn joined(add_products: impl Fn(usize, int32x4_t) -> int32x4_t) -> float32x4_t {
    unsafe {
        let high = add_products(2, vdupq_n_s32(0));
        let middle = add_products(1, vshlq_n_s32::<8>(high));
        vcvtq_f32_s32(add_products(0, vshlq_n_s32::<8>(middle)))
    }
}

/// Adds the sums of four products each of signed bytes: levels, which may be unsigned below 128, and digits. The intrinsic is not stable yet.
#[target_feature(enable = "dotprod")]
#[inline]
fn sdot(mut sums: int32x4_t, levels: uint8x16_t, digits: int8x16_t) -> int32x4_t {
    // SAFETY: registers in, registers out.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {levels:v}.16b, {digits:v}.16b",
            sums = inout(vreg) sums,
            levels = in(vreg) levels,
            digits = in(vreg) digits,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}
