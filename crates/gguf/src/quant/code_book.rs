//! Code books: short vectors of levels that the blocks of the IQ formats refer to by index.
//!
//! A book is stored as a bitmap. Entry k is the k-th smallest integer whose bit is set (bit `n % 8` of byte `n / 8`); its
//! digits in base `levels.len()`, least significant first, are the indices of its levels. That is 512 or 821 bytes for a
//! book of up to 16 KiB in memory. `tools/code-books` writes the bitmaps.

use std::sync::LazyLock;

/// A code book in its compact form, for decoders and kernels.
#[derive(Debug)]
pub struct CodeBook {
    bitmap: &'static [u8],
    levels: &'static [i8],
    elements: u32,
    entries: usize,
}

/// Of IQ1_S and IQ1_M.
pub static IQ1: CodeBook = CodeBook::new(&IQ1_BITMAP, &[-1, 0, 1], 8, 2048);
/// Of IQ2_XXS.
pub static IQ2_XXS: CodeBook = CodeBook::new(&IQ2_XXS_BITMAP, &[8, 25, 43], 8, 256);
/// Of IQ2_XS.
pub static IQ2_XS: CodeBook = CodeBook::new(&IQ2_XS_BITMAP, &[8, 25, 43], 8, 512);
/// Of IQ2_S.
pub static IQ2_S: CodeBook = CodeBook::new(&IQ2_S_BITMAP, &[8, 25, 43], 8, 1024);
/// Of IQ3_XXS.
pub static IQ3_XXS: CodeBook =
    CodeBook::new(&IQ3_XXS_BITMAP, &[4, 12, 20, 28, 36, 44, 52, 62], 4, 256);
/// Of IQ3_S.
pub static IQ3_S: CodeBook = CodeBook::new(&IQ3_S_BITMAP, &[1, 3, 5, 7, 9, 11, 13, 15], 4, 512);

const IQ1_BITMAP: [u8; 821] = bitmap(include_bytes!("iq1.base64"));
const IQ2_XXS_BITMAP: [u8; 821] = bitmap(include_bytes!("iq2_xxs.base64"));
const IQ2_XS_BITMAP: [u8; 821] = bitmap(include_bytes!("iq2_xs.base64"));
const IQ2_S_BITMAP: [u8; 821] = bitmap(include_bytes!("iq2_s.base64"));
const IQ3_XXS_BITMAP: [u8; 512] = bitmap(include_bytes!("iq3_xxs.base64"));
const IQ3_S_BITMAP: [u8; 512] = bitmap(include_bytes!("iq3_s.base64"));

/// A book's entries in memory, expanded on first use.
pub(super) type Expanded<const ELEMENTS: usize> = LazyLock<Vec<[i8; ELEMENTS]>>;

impl CodeBook {
    const fn new(
        bitmap: &'static [u8],
        levels: &'static [i8],
        elements: u32,
        entries: usize,
    ) -> Self {
        let (mut i, mut set) = (0, 0);
        while i < bitmap.len() {
            set += bitmap[i].count_ones() as usize;
            i += 1;
        }
        assert!(set == entries, "the bitmap has a bit for every entry");
        let spare = bitmap.len() * 8 - levels.len().pow(elements);
        assert!(spare < 8, "the bitmap has a bit for every number");
        Self { bitmap, levels, elements, entries }
    }

    /// The possible values of an element.
    pub fn levels(&self) -> &'static [i8] {
        self.levels
    }

    /// Elements per entry: 4 or 8.
    pub fn elements(&self) -> u32 {
        self.elements
    }

    /// Number of entries, a power of two.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Bits per element in a [packed](Self::packed) entry: 2 or 3.
    pub fn element_bits(&self) -> u32 {
        self.levels.len().next_power_of_two().ilog2()
    }

    /// Every entry in 16 bits, for kernels: the level index of element i is in the bits from `i * element_bits`.
    pub fn packed(&self) -> Vec<u16> {
        let bits = self.element_bits();
        let pack = |number| {
            // Indices take at most three bits, entries twelve or sixteen.
            let place = |packed: usize, digit: usize| packed << bits | digit;
            u16::try_from(self.digits(number).rev().fold(0, place)).unwrap_or_default()
        };
        self.numbers().map(pack).collect()
    }

    /// Every entry as levels. `ELEMENTS` must be [`elements`](Self::elements).
    pub fn expand<const ELEMENTS: usize>(&self) -> Vec<[i8; ELEMENTS]> {
        let entry = |number| {
            let mut entry = [0; ELEMENTS];
            for (element, digit) in entry.iter_mut().zip(self.digits(number)) {
                *element = self.levels[digit];
            }
            entry
        };
        self.numbers().map(entry).collect()
    }

    fn numbers(&self) -> impl Iterator<Item = usize> {
        (0..self.bitmap.len() * 8).filter(|n| self.bitmap[n / 8] >> (n % 8) & 1 == 1)
    }

    fn digits(&self, number: usize) -> impl DoubleEndedIterator<Item = usize> {
        let base = self.levels.len();
        (0..self.elements).map(move |i| number / base.pow(i) % base)
    }
}

/// Magnitudes times `scale`, negated where the bit in `signs` is set.
pub(super) fn signed<const N: usize>(scale: f32, entry: &[i8; N], signs: u8, out: &mut [f32; N]) {
    for (i, (x, &magnitude)) in out.iter_mut().zip(entry).enumerate() {
        let x_abs = scale * f32::from(magnitude);
        *x = if signs >> i & 1 == 1 { -x_abs } else { x_abs };
    }
}

/// Eight signs from a 7-bit code: the eighth makes the number of minus signs even.
pub(super) fn even_signs(code: u32) -> u8 {
    let code = code.to_le_bytes()[0] & 127;
    if code.count_ones() % 2 == 1 { code | 128 } else { code }
}

/// Decodes base64 at compile time.
const fn bitmap<const BYTES: usize>(base64: &[u8]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let (mut pending, mut bits) = (0u32, 0);
    let (mut i, mut at) = (0, 0);
    while i < base64.len() {
        if let Some(digit) = digit(base64[i]) {
            pending = pending << 6 | digit;
            bits += 6;
        }
        i += 1;
        if bits >= 8 {
            bits -= 8;
            bytes[at] = (pending >> bits).to_le_bytes()[0];
            at += 1;
        }
    }
    assert!(at == BYTES, "the text has all bytes");
    bytes
}

/// The six bits of a character; `None` for line breaks and padding.
const fn digit(character: u8) -> Option<u32> {
    Some(match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    } as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_entries_unpack_to_the_expanded_ones() {
        fn check<const N: usize>(book: &CodeBook) {
            let (packed, bits) = (book.packed(), book.element_bits());
            assert_eq!(packed.len(), book.entries());
            for (packed, entry) in packed.iter().zip(book.expand::<N>()) {
                let level =
                    |i: u32| book.levels()[usize::from(packed >> (i * bits)) & ((1 << bits) - 1)];
                assert_eq!(entry.to_vec(), (0..book.elements()).map(level).collect::<Vec<_>>());
            }
        }
        [&IQ1, &IQ2_XXS, &IQ2_XS, &IQ2_S].into_iter().for_each(check::<8>);
        [&IQ3_XXS, &IQ3_S].into_iter().for_each(check::<4>);
    }
}
