//! Unicode categories that the standard library does not expose: letters and punctuation.
//!
//! A table is a list of ranges as LEB128: for each range, the gap to the end of the previous one and the length. All
//! letters take 1.5 kB. `tools/unicode-tables` writes the tables.

use std::sync::LazyLock;

static LETTERS: LazyLock<Ranges> = LazyLock::new(|| Ranges::new(include_bytes!("letters.bin")));
static PUNCTUATION: LazyLock<Ranges> =
    LazyLock::new(|| Ranges::new(include_bytes!("punctuation.bin")));

/// Whether a character is in category L.
#[inline]
pub(crate) fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { LETTERS.contains(c) }
}

/// Whether a character is in category N.
#[inline]
pub(crate) fn is_number(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { c.is_numeric() }
}

/// Whether a character is in category P.
pub(crate) fn is_punctuation(c: char) -> bool {
    PUNCTUATION.contains(c)
}

/// Ranges of characters, ascending.
struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    fn new(table: &[u8]) -> Self {
        let mut numbers = Vec::new();
        let (mut number, mut shift) = (0, 0);
        for byte in table {
            number |= u32::from(byte & 127) << shift;
            shift += 7;
            if byte & 128 == 0 {
                numbers.push(number);
                (number, shift) = (0, 0);
            }
        }
        let mut end = 0;
        let ranges = numbers.as_chunks().0.iter().map(|&[distance, length]| {
            let start = end + distance;
            end = start + length;
            (start, end)
        });
        Self(ranges.collect())
    }

    fn contains(&self, c: char) -> bool {
        let code = u32::from(c);
        let after = self.0.partition_point(|(start, _)| *start <= code);
        after > 0 && code < self.0[after - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_each_category() {
        for c in
            ['a', 'Z', 'é', 'ß', 'ª', 'ʰ', 'Ж', 'א', 'ع', 'ก', 'あ', '漢', '한', '𝒳', '\u{2CEA1}']
        {
            assert!(is_letter(c) && !is_number(c) && !is_punctuation(c), "{c:?}");
        }
        for c in ['0', '٣', '½', 'Ⅷ', '〇', '①', '²', '𝟘'] {
            assert!(is_number(c) && !is_letter(c) && !is_punctuation(c), "{c:?}");
        }
        for c in ['!', '_', '-', '»', '…', '。', '٪', '’'] {
            assert!(is_punctuation(c) && !is_number(c) && !is_letter(c), "{c:?}");
        }
        // Marks, symbols, white space, unassigned characters, circled letters.
        for c in ['\u{301}', '\u{93E}', '+', '$', '😀', '\u{200D}', '\u{A0}', '\u{378}', 'Ⓐ', '\0']
        {
            assert!(!is_letter(c) && !is_number(c) && !is_punctuation(c), "{c:?}");
        }
    }

    /// Letters are the alphabetic characters except numbers and some marks and symbols.
    #[test]
    fn letters_are_alphabetic() {
        let chars = || (0..=u32::from(char::MAX)).filter_map(char::from_u32);
        // A newer Unicode version may add letters here that the standard library does not know yet.
        let strange = chars().filter(|c| is_letter(*c) && !c.is_alphabetic()).count();
        let missing = chars().filter(|c| c.is_alphabetic() && !c.is_numeric() && !is_letter(*c));
        assert!(strange < 20_000, "{strange}");
        // The property Other_Alphabetic.
        assert!((1_300..2_000).contains(&missing.clone().count()), "{}", missing.count());
        assert_eq!(chars().filter(|c| is_letter(*c) && c.is_numeric()).count(), 0);
    }
}
