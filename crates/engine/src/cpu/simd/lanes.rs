//! What the kernels need of a processor: 16 floats and 32 bytes at a time.

use super::{
    block_bytes::BlockBytes,
    bytes::{ByteLanes, NoBytes},
    formats::at,
    nibble_bytes::NibbleBytes,
    unit_bytes::UnitBytes,
};

/// Floats of one vector.
pub(crate) const WIDTH: usize = 16;

/// How many sums there are registers for: a tile of a GEMM, and the rows or columns that a GEMV multiplies at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "no target has all the levels")]
pub(crate) enum Tile {
    /// 2 rows and 16 columns; one row and one column.
    Small,
    /// 4 rows and 16 columns; two columns, or two rows in bytes.
    Medium,
    /// 8 rows and 32 columns; four columns, or four rows.
    Large,
}

/// Vector operations of one feature level. Kernels are written once, generic over this, and compiled once per level; all methods must be
/// inlined into a function that enables the level's features.
#[allow(dead_code, reason = "pages have no formats that need some of the operations")]
pub(crate) trait Lanes: Copy {
    /// 16 floats.
    type Floats: Copy;
    /// 32 bytes.
    type Bytes: Copy;
    /// 32 integers of 16 bits.
    type Words: Copy;
    /// 16 integers of 32 bits.
    type Ints: Copy;
    /// The level's kernels in bytes.
    type ByBytes: ByteLanes;
    /// Dot products of bytes.
    type NibbleBytes: NibbleBytes<Self::Ints>;
    /// Products of signed bytes.
    type UnitBytes: UnitBytes<Self::Bytes>;
    /// Products of blocks in bytes.
    type BlockBytes: BlockBytes<Self::Floats>;
    /// The sums that there are registers for.
    const TILE: Tile;
    /// The level's kernels in bytes, if they take fewer instructions than those in words.
    #[inline(always)]
    fn by_bytes(self) -> Option<Self::ByBytes> {
        None
    }
    /// The level's dot products of bytes, if they take fewer instructions than floats.
    #[inline(always)]
    fn nibble_bytes(self) -> Option<Self::NibbleBytes> {
        None
    }

    /// The level's kernels that multiply blocks in bytes, if they take fewer instructions than those in words.
    #[inline(always)]
    fn block_bytes(self) -> Option<Self::BlockBytes> {
        None
    }

    /// The level's kernels in signed bytes, if they take fewer instructions than floats.
    #[inline(always)]
    fn unit_bytes(self) -> Option<Self::UnitBytes> {
        None
    }

    /// The same float in all lanes.
    fn splat(self, x: f32) -> Self::Floats;
    /// 16 floats from memory.
    fn load(self, x: &[f32; WIDTH]) -> Self::Floats;
    /// 16 floats to memory.
    fn store(self, x: Self::Floats, out: &mut [f32; WIDTH]);
    /// `a + b`
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a - b`
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a · b`
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a · b + c`, with one rounding where the level has such an instruction.
    fn fma(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;

    /// Adds the products of a unit, times a scale, to sums; which lane a product is added to is the level's choice.
    #[inline(always)]
    fn add_scaled_unit(
        self,
        scale: f32,
        w: [Self::Floats; 2],
        x: [Self::Floats; 2],
        sums: Self::Floats,
    ) -> Self::Floats {
        let dots = self.fma(w[1], x[1], self.mul(w[0], x[0]));
        self.fma(self.splat(scale), dots, sums)
    }

    /// Unsigned bytes as floats.
    fn unsigned(self, bytes: &[u8; WIDTH]) -> Self::Floats;
    /// Signed bytes as floats.
    fn signed(self, bytes: &[u8; WIDTH]) -> Self::Floats;
    /// F16 as floats.
    fn halves(self, bytes: &[u8; 2 * WIDTH]) -> Self::Floats;
    /// BF16 as floats.
    fn brain_floats(self, bytes: &[u8; 2 * WIDTH]) -> Self::Floats;
    /// One F16.
    fn half(self, bytes: [u8; 2]) -> f32;
    /// The F16 at the beginning of each of eight blocks.
    #[inline(always)]
    fn strided_halves(self, blocks: &[u8], bytes: usize) -> [f32; 8] {
        let mut halves = [0.0; 8];
        for (half, block) in halves.iter_mut().zip(blocks.chunks_exact(bytes)) {
            *half = self.half([block[0], block[1]]);
        }
        halves
    }
    /// Two F16.
    #[inline(always)]
    fn two_halves(self, [a, b, c, d]: [u8; 4]) -> [f32; 2] {
        [self.half([a, b]), self.half([c, d])]
    }

    /// 32 bytes from memory.
    fn bytes(self, bytes: &[u8; 32]) -> Self::Bytes;
    /// The low nibbles of 16 bytes, then their high nibbles.
    fn split_nibbles(self, bytes: &[u8; 16]) -> Self::Bytes;
    /// The low or high nibbles of 16 bytes as floats, less a constant.
    #[inline(always)]
    fn nibbles(self, bytes: &[u8; 16], high: bool, less: u8) -> Self::Floats {
        self.widen(self.minus(self.split_nibbles(bytes), less))[usize::from(high)]
    }
    /// `a | b`
    fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// `byte - by`, wrapping.
    fn minus(self, a: Self::Bytes, by: u8) -> Self::Bytes;
    /// `(byte << by) & mask`, or `(byte >> -by) & mask`; the mask has only bits that come from the same byte.
    fn shift(self, a: Self::Bytes, by: i32, mask: u8) -> Self::Bytes;
    /// `a + b`, wrapping.
    fn plus(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Negates the bytes whose bit is set.
    fn negate(self, a: Self::Bytes, signs: u32) -> Self::Bytes;
    /// Four times eight bytes, the first in the lowest bits.
    fn eights(self, groups: [u64; 4]) -> Self::Bytes;
    /// Looks up bytes below 16.
    fn look_up(self, table: &[i8; 16], index: Self::Bytes) -> Self::Bytes;
    /// Signed bytes as floats, in two halves.
    fn widen(self, a: Self::Bytes) -> [Self::Floats; 2];

    /// 32 integers of 16 bits from memory.
    fn words(self, x: &[i16; 32]) -> Self::Words;
    /// 32 unsigned bytes from memory, widened.
    fn unsigned_words(self, bytes: &[u8; 32]) -> Self::Words;
    /// Signed bytes, widened.
    fn signed_words(self, a: Self::Bytes) -> Self::Words;
    /// The low nibbles of words.
    fn low_nibbles(self, a: Self::Words) -> Self::Words;
    /// `word >> 4`, of words that are not negative.
    fn high_nibbles(self, a: Self::Words) -> Self::Words;
    /// The low or high nibbles of 32 bytes with more bits above them, which `by` and `mask` take from other bytes as [`Lanes::shift`] does, less
    /// a constant.
    #[inline(always)]
    fn levels(
        self,
        (nibbles, high): (&[u8; 32], bool),
        (bits, by, mask): (&[u8; 32], i32, u8),
        less: u8,
    ) -> Self::Words {
        let low = self.shift(self.bytes(nibbles), if high { -4 } else { 0 }, 15);
        let all = self.or(low, self.shift(self.bytes(bits), by, mask));
        self.signed_words(self.minus(all, less))
    }
    /// Eight bytes as pairs of equal words.
    #[inline(always)]
    fn pairs(self, bytes: u64) -> [i32; 8] {
        let mut pairs = [0; 8];
        for (pair, byte) in pairs.iter_mut().zip(bytes.to_le_bytes()) {
            *pair = i32::from(byte) * 0x1_0001;
        }
        pairs
    }
    /// Multiplies words with a scale, a pair of equal words, modulo 2¹⁶.
    fn scale_words(self, a: Self::Words, scale: i32) -> Self::Words;
    /// The same with two of 16 scales: the first half with `scales[2 · unit]`, the other with the next one.
    fn scale_halves(self, a: Self::Words, scales: &[i32; WIDTH], unit: usize) -> Self::Words;
    /// Words as floats, in two halves.
    fn word_floats(self, a: Self::Words) -> [Self::Floats; 2];
    /// 16 zeros.
    fn zero_ints(self) -> Self::Ints;
    /// `a + b`, wrapping.
    fn add_ints(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// The sums of the products of two words each.
    #[inline(always)]
    fn multiply_words(self, a: Self::Words, b: Self::Words) -> Self::Ints {
        self.dot_words(a, b, self.zero_ints())
    }
    /// Adds the products of two words each to every lane, wrapping; which two they are is the level's choice.
    fn dot_words(self, a: Self::Words, b: Self::Words, sums: Self::Ints) -> Self::Ints;
    /// 16 integers from memory.
    fn ints(self, x: &[i32; WIDTH]) -> Self::Ints;
    /// `a & mask`
    fn masked(self, a: Self::Ints, mask: i32) -> Self::Ints;
    /// `a >> 16`, with zeros from the left.
    fn high_words(self, a: Self::Ints) -> Self::Ints;
    /// The bytes of four blocks of an F16 and 16 bytes, as four integers each.
    #[inline(always)]
    fn ints_of_four_blocks(self, blocks: &[u8; 72]) -> Self::Ints {
        let mut ints = [0; WIDTH];
        for (ints, block) in ints.as_chunks_mut::<4>().0.iter_mut().zip(blocks.as_chunks::<18>().0)
        {
            *ints = [2, 6, 10, 14].map(|from| i32::from_le_bytes(*at(block, from)));
        }
        self.ints(&ints)
    }
    /// The F16 of four blocks of an F16 and 16 bytes, in four lanes each.
    #[inline(always)]
    fn halves_of_four_blocks(self, blocks: &[u8; 72]) -> Self::Floats {
        let mut halves = [0.0; WIDTH];
        for (halves, block) in halves.as_chunks_mut().0.iter_mut().zip(blocks.as_chunks::<18>().0) {
            *halves = [self.half([block[0], block[1]]); 4];
        }
        self.load(&halves)
    }
    /// Floats below 2³¹ in magnitude as integers, rounded to nearest, ties to even.
    fn integers(self, x: Self::Floats) -> [i32; WIDTH];
    /// Integers as floats, rounded to nearest.
    fn floats(self, a: Self::Ints) -> Self::Floats;

    /// The same value, of which the compiler knows no more than that it is in memory.
    #[inline(always)]
    fn in_memory<T>(self, value: &T) -> &T {
        value
    }

    /// Prefetches as many bytes as these, some distance after them, which may be past the end of their slice.
    #[inline(always)]
    fn prefetch_after(self, _: &[u8], _distance: usize) {}

    /// The sum of all lanes, in one order on every level.
    #[inline(always)]
    fn sum(self, x: Self::Floats) -> f32 {
        let mut lanes = [0.0; WIDTH];
        self.store(x, &mut lanes);
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                lanes[i] += lanes[i + half];
            }
        }
        lanes[0]
    }
}

/// Arrays, which compilers turn into the vectors of the build's target, such as SSE2 on x86-64.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

/// Whether every processor of the build's target multiplies and adds in one instruction.
const HAS_FMA: bool = cfg!(any(target_feature = "fma", target_feature = "neon"));

#[inline(always)]
fn each(f: impl Fn(usize) -> f32) -> [f32; WIDTH] {
    let mut out = [0.0; WIDTH];
    for (i, out) in out.iter_mut().enumerate() {
        *out = f(i);
    }
    out
}

impl Lanes for Plain {
    type Floats = [f32; WIDTH];
    type Bytes = [u8; 32];
    type Words = [i16; 32];
    type Ints = [i32; WIDTH];
    type ByBytes = NoBytes;
    type NibbleBytes = NoBytes;
    type UnitBytes = NoBytes;
    type BlockBytes = NoBytes;
    const TILE: Tile = Tile::Medium;

    #[inline(always)]
    fn splat(self, x: f32) -> Self::Floats {
        [x; WIDTH]
    }

    #[inline(always)]
    fn load(self, x: &[f32; WIDTH]) -> Self::Floats {
        *x
    }

    #[inline(always)]
    fn store(self, x: Self::Floats, out: &mut [f32; WIDTH]) {
        *out = x;
    }

    #[inline(always)]
    fn add(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn sub(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each(|i| a[i] - b[i])
    }

    #[inline(always)]
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        each(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn fma(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        each(|i| if HAS_FMA { a[i].mul_add(b[i], c[i]) } else { a[i] * b[i] + c[i] })
    }

    #[inline(always)]
    fn unsigned(self, bytes: &[u8; WIDTH]) -> Self::Floats {
        each(|i| f32::from(bytes[i]))
    }

    #[inline(always)]
    fn signed(self, bytes: &[u8; WIDTH]) -> Self::Floats {
        each(|i| f32::from(bytes[i].cast_signed()))
    }

    #[inline(always)]
    fn halves(self, bytes: &[u8; 2 * WIDTH]) -> Self::Floats {
        each(|i| self.half([bytes[2 * i], bytes[2 * i + 1]]))
    }

    #[inline(always)]
    fn brain_floats(self, bytes: &[u8; 2 * WIDTH]) -> Self::Floats {
        each(|i| f32::from_bits(u32::from_le_bytes([0, 0, bytes[2 * i], bytes[2 * i + 1]])))
    }

    #[inline(always)]
    fn half(self, bytes: [u8; 2]) -> f32 {
        const TWO_TO_112: f32 = f32::from_bits((127 + 112) << 23);
        let bits = u32::from(u16::from_le_bytes(bytes));
        // The exponent's bias differs by 112; multiplying also handles subnormals.
        let magnitude = (f32::from_bits((bits & 0x7FFF) << 13) * TWO_TO_112).to_bits();
        let special = if bits & 0x7C00 == 0x7C00 { 0x7F80_0000 } else { 0 };
        f32::from_bits(magnitude | special | (bits & 0x8000) << 16)
    }

    #[inline(always)]
    fn bytes(self, bytes: &[u8; 32]) -> Self::Bytes {
        *bytes
    }

    #[inline(always)]
    fn split_nibbles(self, bytes: &[u8; 16]) -> Self::Bytes {
        let mut out = [0; 32];
        for (i, byte) in bytes.iter().enumerate() {
            (out[i], out[i + 16]) = (byte & 15, byte >> 4);
        }
        out
    }

    #[inline(always)]
    fn or(self, mut a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
        a
    }

    #[inline(always)]
    fn minus(self, a: Self::Bytes, by: u8) -> Self::Bytes {
        a.map(|byte| byte.wrapping_sub(by))
    }

    #[inline(always)]
    fn shift(self, a: Self::Bytes, by: i32, mask: u8) -> Self::Bytes {
        match by {
            0.. => a.map(|byte| byte << by & mask),
            _ => a.map(|byte| byte >> -by & mask),
        }
    }

    #[inline(always)]
    fn plus(self, mut a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        a.iter_mut().zip(b).for_each(|(a, b)| *a = a.wrapping_add(b));
        a
    }

    #[inline(always)]
    fn negate(self, mut a: Self::Bytes, signs: u32) -> Self::Bytes {
        for (i, byte) in a.iter_mut().enumerate() {
            *byte = if signs >> i & 1 == 1 { byte.wrapping_neg() } else { *byte };
        }
        a
    }

    #[inline(always)]
    fn eights(self, groups: [u64; 4]) -> Self::Bytes {
        let mut out = [0; 32];
        for (out, group) in out.as_chunks_mut::<8>().0.iter_mut().zip(groups) {
            *out = group.to_le_bytes();
        }
        out
    }

    #[inline(always)]
    fn look_up(self, table: &[i8; 16], index: Self::Bytes) -> Self::Bytes {
        index.map(|i| table[usize::from(i & 15)].cast_unsigned())
    }

    #[inline(always)]
    fn widen(self, a: Self::Bytes) -> [Self::Floats; 2] {
        [each(|i| f32::from(a[i].cast_signed())), each(|i| f32::from(a[16 + i].cast_signed()))]
    }

    #[inline(always)]
    fn words(self, x: &[i16; 32]) -> Self::Words {
        *x
    }

    #[inline(always)]
    fn unsigned_words(self, bytes: &[u8; 32]) -> Self::Words {
        bytes.map(i16::from)
    }

    #[inline(always)]
    fn signed_words(self, a: Self::Bytes) -> Self::Words {
        a.map(|byte| byte.cast_signed().into())
    }

    #[inline(always)]
    fn low_nibbles(self, a: Self::Words) -> Self::Words {
        a.map(|word| word & 15)
    }

    #[inline(always)]
    fn high_nibbles(self, a: Self::Words) -> Self::Words {
        a.map(|word| word >> 4)
    }

    #[inline(always)]
    fn scale_words(self, a: Self::Words, scale: i32) -> Self::Words {
        a.map(|word| word.wrapping_mul(scale as i16))
    }

    #[inline(always)]
    fn scale_halves(self, mut a: Self::Words, scales: &[i32; WIDTH], unit: usize) -> Self::Words {
        for (half, scale) in a.as_chunks_mut::<WIDTH>().0.iter_mut().zip(&scales[2 * unit..]) {
            half.iter_mut().for_each(|word| *word = word.wrapping_mul(*scale as i16));
        }
        a
    }

    #[inline(always)]
    fn word_floats(self, a: Self::Words) -> [Self::Floats; 2] {
        [each(|i| a[i].into()), each(|i| a[WIDTH + i].into())]
    }

    #[inline(always)]
    fn zero_ints(self) -> Self::Ints {
        [0; WIDTH]
    }

    #[inline(always)]
    fn add_ints(self, mut a: Self::Ints, b: Self::Ints) -> Self::Ints {
        a.iter_mut().zip(b).for_each(|(a, b)| *a = a.wrapping_add(b));
        a
    }

    #[inline(always)]
    fn dot_words(self, a: Self::Words, b: Self::Words, mut sums: Self::Ints) -> Self::Ints {
        for (i, sum) in sums.iter_mut().enumerate() {
            let product = |i: usize| i32::from(a[i]) * i32::from(b[i]);
            *sum = sum.wrapping_add(product(2 * i).wrapping_add(product(2 * i + 1)));
        }
        sums
    }

    #[inline(always)]
    fn ints(self, x: &[i32; WIDTH]) -> Self::Ints {
        *x
    }

    #[inline(always)]
    fn masked(self, a: Self::Ints, mask: i32) -> Self::Ints {
        a.map(|a| a & mask)
    }

    #[inline(always)]
    fn high_words(self, a: Self::Ints) -> Self::Ints {
        a.map(|a| a >> 16 & 0xFFFF)
    }

    #[inline(always)]
    fn integers(self, x: Self::Floats) -> [i32; WIDTH] {
        x.map(|x| x.round_ties_even() as i32)
    }

    #[inline(always)]
    fn floats(self, a: Self::Ints) -> Self::Floats {
        each(|i| a[i] as f32)
    }
}
