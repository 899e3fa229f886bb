//! The 128-bit vectors of wasm. Browsers with them are all that rullama's module runs in (`.cargo/config.toml`), so nothing is chosen at run time,
//! and all of it is safe: memory is read and written as arrays that are cast to vectors.

use std::arch::wasm32::*;

use bytemuck::cast;

use super::{
    bytes::NoBytes,
    lanes::{Lanes, Plain, Tile, WIDTH},
};

/// Vectors of 128 bits, four of them side by side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Simd128;

/// Combines vectors pairwise.
#[inline(always)]
fn zip<const N: usize>(a: [v128; N], b: [v128; N], f: impl Fn(v128, v128) -> v128) -> [v128; N] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

/// Sixteen bytes as unsigned words.
#[inline(always)]
fn unsigned_words_of(bytes: v128) -> [v128; 2] {
    [u16x8_extend_low_u8x16(bytes), u16x8_extend_high_u8x16(bytes)]
}

/// Sixteen bytes as signed words.
#[inline(always)]
fn signed_words_of(bytes: v128) -> [v128; 2] {
    [i16x8_extend_low_i8x16(bytes), i16x8_extend_high_i8x16(bytes)]
}

/// Sixteen signed words as floats.
#[inline(always)]
fn floats_of([a, b]: [v128; 2]) -> [v128; 4] {
    let ints = [
        i32x4_extend_low_i16x8(a),
        i32x4_extend_high_i16x8(a),
        i32x4_extend_low_i16x8(b),
        i32x4_extend_high_i16x8(b),
    ];
    ints.map(|a| f32x4_convert_i32x4(a))
}

/// Sixteen unsigned words, widened to 32 bits.
#[inline(always)]
fn wide_words(bytes: &[u8; 2 * WIDTH]) -> [v128; 4] {
    let [a, b]: [v128; 2] = cast(*bytes);
    [
        u32x4_extend_low_u16x8(a),
        u32x4_extend_high_u16x8(a),
        u32x4_extend_low_u16x8(b),
        u32x4_extend_high_u16x8(b),
    ]
}

impl Lanes for Simd128 {
    type Floats = [v128; 4];
    type Bytes = [v128; 2];
    type Words = [v128; 4];
    type Ints = [v128; 4];
    type ByBytes = NoBytes;
    type NibbleBytes = NoBytes;
    type UnitBytes = NoBytes;
    type BlockBytes = NoBytes;
    const TILE: Tile = Tile::Small;

    #[inline(always)]
    fn splat(self, x: f32) -> Self::Floats {
        [f32x4_splat(x); 4]
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
        zip(a, b, |a, b| f32x4_add(a, b))
    }

    #[inline(always)]
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        zip(a, b, |a, b| f32x4_sub(a, b))
    }

    #[inline(always)]
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        zip(a, b, |a, b| f32x4_mul(a, b))
    }

    #[inline(always)]
    fn fma(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        self.add(self.mul(a, b), c)
    }

    /// Without an instruction that multiplies and adds, a scale per vector would cost a third of the arithmetic.
    #[inline(always)]
    fn add_scaled_unit(
        self,
        scale: f32,
        w: [Self::Floats; 2],
        x: [Self::Floats; 2],
        mut sums: Self::Floats,
    ) -> Self::Floats {
        let [a, b, c, d] = self.add(self.mul(w[0], x[0]), self.mul(w[1], x[1]));
        let dot = f32x4_add(f32x4_add(a, b), f32x4_add(c, d));
        sums[0] = f32x4_add(sums[0], f32x4_mul(f32x4_splat(scale), dot));
        sums
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
        // As `Plain::half`, four at a time.
        let two_to_112 = f32x4_splat(f32::from_bits((127 + 112) << 23));
        wide_words(bytes).map(|half| {
            let bits = u32x4_shl(v128_and(half, u32x4_splat(0x7FFF)), 13);
            let exponent = v128_and(half, u32x4_splat(0x7C00));
            let infinite = u32x4_eq(exponent, u32x4_splat(0x7C00));
            let special = v128_and(infinite, u32x4_splat(0x7F80_0000));
            let sign = u32x4_shl(v128_and(half, u32x4_splat(0x8000)), 16);
            v128_or(v128_or(f32x4_mul(bits, two_to_112), special), sign)
        })
    }

    #[inline(always)]
    fn brain_floats(self, bytes: &[u8; 2 * WIDTH]) -> Self::Floats {
        wide_words(bytes).map(|word| u32x4_shl(word, 16))
    }

    #[inline(always)]
    fn half(self, bytes: [u8; 2]) -> f32 {
        Plain.half(bytes)
    }

    #[inline(always)]
    fn bytes(self, bytes: &[u8; 32]) -> Self::Bytes {
        cast(*bytes)
    }

    #[inline(always)]
    fn split_nibbles(self, bytes: &[u8; 16]) -> Self::Bytes {
        let bytes: v128 = cast(*bytes);
        // Shifts of words are one instruction, those of bytes several.
        [bytes, u16x8_shr(bytes, 4)].map(|bytes| v128_and(bytes, u8x16_splat(15)))
    }

    #[inline(always)]
    fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        zip(a, b, |a, b| v128_or(a, b))
    }

    #[inline(always)]
    fn minus(self, a: Self::Bytes, by: u8) -> Self::Bytes {
        a.map(|a| u8x16_sub(a, u8x16_splat(by)))
    }

    #[inline(always)]
    fn shift(self, a: Self::Bytes, by: i32, mask: u8) -> Self::Bytes {
        // The mask clears what came from a neighbour.
        a.map(|a| {
            let shifted = match by {
                0.. => u16x8_shl(a, by.cast_unsigned()),
                _ => u16x8_shr(a, by.unsigned_abs()),
            };
            v128_and(shifted, u8x16_splat(mask))
        })
    }

    #[inline(always)]
    fn plus(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        zip(a, b, |a, b| u8x16_add(a, b))
    }

    #[inline(always)]
    fn negate(self, a: Self::Bytes, signs: u32) -> Self::Bytes {
        let bit = u64x2_splat(0x8040_2010_0804_0201);
        let signs = u32x4_splat(signs);
        // Every byte gets the byte of its bit.
        let spread = [
            u8x16_swizzle(signs, u64x2(0, 0x0101_0101_0101_0101)),
            u8x16_swizzle(signs, u64x2(0x0202_0202_0202_0202, 0x0303_0303_0303_0303)),
        ];
        zip(a, spread, |a, spread| {
            let mask = u8x16_eq(v128_and(spread, bit), bit);
            u8x16_sub(v128_xor(a, mask), mask)
        })
    }

    #[inline(always)]
    fn eights(self, [a, b, c, d]: [u64; 4]) -> Self::Bytes {
        [u64x2(a, b), u64x2(c, d)]
    }

    #[inline(always)]
    fn look_up(self, table: &[i8; 16], index: Self::Bytes) -> Self::Bytes {
        let table: v128 = cast(*table);
        index.map(|index| u8x16_swizzle(table, index))
    }

    #[inline(always)]
    fn widen(self, a: Self::Bytes) -> [Self::Floats; 2] {
        a.map(|half| floats_of(signed_words_of(half)))
    }

    #[inline(always)]
    fn words(self, x: &[i16; 32]) -> Self::Words {
        cast(*x)
    }

    #[inline(always)]
    fn unsigned_words(self, bytes: &[u8; 32]) -> Self::Words {
        let [[a, b], [c, d]] = self.bytes(bytes).map(unsigned_words_of);
        [a, b, c, d]
    }

    #[inline(always)]
    fn signed_words(self, a: Self::Bytes) -> Self::Words {
        let [[a, b], [c, d]] = a.map(signed_words_of);
        [a, b, c, d]
    }

    #[inline(always)]
    fn low_nibbles(self, a: Self::Words) -> Self::Words {
        a.map(|a| v128_and(a, u16x8_splat(15)))
    }

    #[inline(always)]
    fn high_nibbles(self, a: Self::Words) -> Self::Words {
        a.map(|a| u16x8_shr(a, 4))
    }

    #[inline(always)]
    fn scale_words(self, a: Self::Words, scale: i32) -> Self::Words {
        a.map(|a| i16x8_mul(a, i32x4_splat(scale)))
    }

    #[inline(always)]
    fn scale_halves(self, a: Self::Words, scales: &[i32; WIDTH], unit: usize) -> Self::Words {
        let [first, second] =
            [scales[2 * unit], scales[2 * unit + 1]].map(|scale| i32x4_splat(scale));
        zip(a, [first, first, second, second], |a, b| i16x8_mul(a, b))
    }

    #[inline(always)]
    fn word_floats(self, [a, b, c, d]: Self::Words) -> [Self::Floats; 2] {
        [floats_of([a, b]), floats_of([c, d])]
    }

    #[inline(always)]
    fn zero_ints(self) -> Self::Ints {
        [i32x4_splat(0); 4]
    }

    #[inline(always)]
    fn add_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints {
        zip(a, b, |a, b| i32x4_add(a, b))
    }

    #[inline(always)]
    fn dot_words(self, a: Self::Words, b: Self::Words, sums: Self::Ints) -> Self::Ints {
        self.add_ints(sums, zip(a, b, |a, b| i32x4_dot_i16x8(a, b)))
    }

    #[inline(always)]
    fn integers(self, x: Self::Floats) -> [i32; WIDTH] {
        cast(x.map(|x| i32x4_trunc_sat_f32x4(f32x4_nearest(x))))
    }

    #[inline(always)]
    fn ints(self, x: &[i32; WIDTH]) -> Self::Ints {
        cast(*x)
    }

    #[inline(always)]
    fn masked(self, a: Self::Ints, mask: i32) -> Self::Ints {
        a.map(|a| v128_and(a, i32x4_splat(mask)))
    }

    #[inline(always)]
    fn high_words(self, a: Self::Ints) -> Self::Ints {
        a.map(|a| u32x4_shr(a, 16))
    }

    #[inline(always)]
    fn floats(self, a: Self::Ints) -> Self::Floats {
        a.map(|a| f32x4_convert_i32x4(a))
    }

    #[inline(always)]
    fn sum(self, [a, b, c, d]: Self::Floats) -> f32 {
        let four = f32x4_add(f32x4_add(a, c), f32x4_add(b, d));
        let two = f32x4_add(four, i32x4_shuffle::<2, 3, 0, 1>(four, four));
        f32x4_extract_lane::<0>(two) + f32x4_extract_lane::<1>(two)
    }
}
