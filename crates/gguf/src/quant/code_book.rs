//! Code books: short vectors of magnitudes that a block refers to by number.
//!
//! A book is stored as a bitmap in base64. Entry k belongs to the k-th smallest number whose bit is set;
//! the number's digits, in a base of as many levels as there are, choose the magnitudes, least digit first.

/// Expands a book at compile time, which fails if the bitmap is not one of `ENTRIES` entries.
pub(crate) const fn expand<const ENTRIES: usize, const ELEMENTS: usize>(
    base64: &[u8],
    levels: &[u8],
) -> [[u8; ELEMENTS]; ENTRIES] {
    let mut book = [[0; ELEMENTS]; ENTRIES];
    let (mut entry, mut number) = (0, 0);
    // Bits come out of base64 from the top of a byte, but bitmaps count from its bottom: go byte by byte.
    let (mut pending, mut bits) = (0u32, 0);
    let mut i = 0;
    while i < base64.len() {
        if let Some(digit) = digit(base64[i]) {
            pending = pending << 6 | digit;
            bits += 6;
        }
        i += 1;
        if bits < 8 {
            continue;
        }
        bits -= 8;
        let byte = pending >> bits & 255;
        let mut bit = 0;
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                book[entry] = magnitudes(number, levels);
                entry += 1;
            }
            bit += 1;
            number += 1;
        }
    }
    assert!(entry == ENTRIES, "the bitmap has a bit for every entry");
    book
}

const fn magnitudes<const ELEMENTS: usize>(mut number: usize, levels: &[u8]) -> [u8; ELEMENTS] {
    let mut magnitudes = [0; ELEMENTS];
    let mut i = 0;
    while i < ELEMENTS {
        magnitudes[i] = levels[number % levels.len()];
        number /= levels.len();
        i += 1;
    }
    assert!(number == 0, "a number has no more digits than elements");
    magnitudes
}

/// The six bits of a character; none for line breaks and padding.
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
