//! The `Range` header: one range of bytes.

use std::ops::Range;

/// What a `Range` header asks of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Everything: there is no header, or it counts in something other than bytes.
    Whole,
    /// These bytes, at least one, all inside the file.
    Part(Range<u64>),
    /// Bytes outside the file, several ranges, or nothing that can be understood. Sending gigabytes instead would
    /// surprise somebody who wanted a few bytes, so all of these are refused.
    Unsatisfiable,
}

/// Reads the header's value for a file of `len` bytes.
pub(crate) fn parse(value: Option<&str>, len: u64) -> Asked {
    let Some((unit, ranges)) = value.and_then(|value| value.split_once('=')) else {
        return Asked::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Asked::Whole;
    }
    single(ranges.trim(), len).map_or(Asked::Unsatisfiable, Asked::Part)
}

fn single(range: &str, len: u64) -> Option<Range<u64>> {
    let (first, last) = range.split_once('-')?;
    if first.is_empty() {
        let count = number(last)?.min(len);
        return (count > 0).then(|| len - count..len);
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    (first <= last && first < len).then(|| first..last.saturating_add(1).min(len))
}

/// Digits only: no sign, no blanks. Numbers too large for any file mean its end.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Asked, parse};

    #[test]
    fn ranges_of_a_file_of_ten_bytes() {
        for (value, range) in [
            ("bytes=0-0", 0..1),
            ("bytes=9-9", 9..10),
            ("bytes=0-9", 0..10),
            ("bytes=0-10", 0..10),
            ("bytes=3-", 3..10),
            ("bytes=-1", 9..10),
            ("bytes=-10", 0..10),
            ("bytes=-11", 0..10),
            ("Bytes= 2-4 ", 2..5),
            ("bytes=2-99999999999999999999999", 2..10),
            ("bytes=2-18446744073709551615", 2..10),
        ] {
            assert_eq!(parse(Some(value), 10), Asked::Part(range), "{value}");
        }
    }

    #[test]
    fn what_cannot_be_had() {
        for value in [
            "bytes=10-",
            "bytes=10-12",
            "bytes=-0",
            "bytes=4-3",
            "bytes=0-0,2-2",
            "bytes=0-0, -1",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=1 -2",
            "bytes=--1",
            "bytes=99999999999999999999999-",
        ] {
            assert_eq!(parse(Some(value), 10), Asked::Unsatisfiable, "{value}");
        }
        for value in ["bytes=0-0", "bytes=-1", "bytes=0-"] {
            assert_eq!(parse(Some(value), 0), Asked::Unsatisfiable, "{value}");
        }
    }

    #[test]
    fn other_units_are_not_for_us() {
        for value in [None, Some(""), Some("bytes"), Some("lines=1-2"), Some("0-9")] {
            assert_eq!(parse(value, 10), Asked::Whole, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_lie_inside_the_file(value in "bytes=[0-9]{0,20}-[0-9]{0,20}", len in 0..=u64::MAX) {
            if let Asked::Part(range) = parse(Some(&value), len) {
                prop_assert!(range.start < range.end && range.end <= len);
            }
        }

        #[test]
        fn any_text_is_fine(value in ".*", len in 0..100u64) {
            parse(Some(&value), len);
        }
    }
}
