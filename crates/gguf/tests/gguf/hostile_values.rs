//! Invalid values in the metadata.

use rullama_gguf::{GgufError, Kind, ValueType};

use crate::support::{Counting, Raw, open, refuses};

/// One entry "key" of value type `id`, without its value.
fn entry(id: u32) -> Raw {
    Raw::header(0, 1).string("key").u32(id)
}

/// An array entry, without its elements.
fn array(element: u32, count: u64) -> Raw {
    entry(9).u32(element).u64(count)
}

#[test]
fn string_past_the_end() {
    for length in [5, 1 << 31, 1 << 32, 1 << 63, u64::MAX] {
        refuses!(
            entry(8).u64(length).bytes(b"four").0,
            GgufError::StringPastEnd { at: 39, length: l, len: 51 } if *l == length
        );
    }
}

#[test]
fn key_past_the_end() {
    for length in [100, 1 << 40, u64::MAX] {
        let file = Raw::header(0, 1).u64(length).bytes(&[b'k'; 20]).0;
        refuses!(file, GgufError::StringPastEnd { at: 24, .. });
    }
}

#[test]
fn key_too_long() {
    let key = |length| Raw::header(0, 1).string(&"k".repeat(length)).u32(0).bytes(&[7]).0;
    refuses!(key(65_536), GgufError::KeyTooLong { length: 65_536, .. });
    assert_eq!(open(key(65_535)).unwrap().metadata().len(), 1);
}

#[test]
fn array_of_2_to_the_40_strings() {
    refuses!(array(8, 1 << 40).string("one").0, GgufError::ArrayPastEnd { count, .. } if *count == 1 << 40);
}

#[test]
fn arrays_past_the_end_of_every_type() {
    for (element, bytes) in [
        (0, 1),
        (1, 1),
        (2, 2),
        (3, 2),
        (4, 4),
        (5, 4),
        (6, 4),
        (7, 1),
        (8, 8),
        (10, 8),
        (11, 8),
        (12, 8),
    ] {
        // One element more than there is space for, and counts whose product with the size overflows.
        for count in [16 / bytes + 1, 1 << 61, 1 << 62, 1 << 63, u64::MAX] {
            refuses!(array(element, count).bytes(&[0; 16]).0, GgufError::ArrayPastEnd { .. });
        }
    }
}

#[test]
fn string_inside_an_array_past_the_end() {
    for length in [9, 1 << 32, u64::MAX] {
        let file = array(8, 2).string("fine").u64(length).bytes(b"12345678").0;
        refuses!(file, GgufError::StringPastEnd { length: l, .. } if *l == length);
    }
}

#[test]
fn huge_claims_are_refused_before_reading_on() {
    let check = |raw: Raw, what: &str| {
        let source = Counting::new(raw.0, 7 << 30);
        let error = source.open().expect_err(what);
        assert!(matches!(error, GgufError::HeaderTooLarge { .. }), "{what}: {error:?}");
        assert_eq!(source.reads.get(), 1, "{what}");
    };
    check(array(0, 6 << 30), "6 GB of bytes");
    check(array(8, 1 << 29), "half a billion strings");
    check(array(8, 1).u64(6 << 30), "a string of 6 GB in an array");
    check(entry(8).u64(6 << 30), "a string of 6 GB");
}

#[test]
fn nested_arrays() {
    refuses!(array(9, 1).u32(0).u64(1).bytes(&[1]).0, GgufError::NestedArray { key } if key == "key");
    refuses!(array(9, 0).0, GgufError::NestedArray { .. });
}

#[test]
fn unknown_value_types() {
    for id in [13, 14, 255, u32::MAX] {
        refuses!(entry(id).bytes(&[0; 32]).0, GgufError::UnknownValueType { id: i, .. } if *i == id);
        refuses!(array(id, 1).bytes(&[0; 32]).0, GgufError::UnknownValueType { id: i, .. } if *i == id);
    }
}

#[test]
fn bools_that_are_neither() {
    refuses!(entry(7).bytes(&[2]).0, GgufError::InvalidBool { byte: 2, .. });
    refuses!(array(7, 3).bytes(&[0, 1, 255]).0, GgufError::InvalidBool { byte: 255, .. });
}

#[test]
fn text_that_is_not_utf8() {
    refuses!(
        Raw::header(0, 1).u64(2).bytes(b"\xC3(").u32(0).bytes(&[0]).0,
        GgufError::KeyNotUtf8 { at: 24 }
    );
    refuses!(entry(8).u64(1).bytes(b"\xFF").0, GgufError::ValueNotUtf8 { .. });
    let file = array(8, 3).string("fine").u64(1).bytes(b"\x80").string("fine").0;
    refuses!(file, GgufError::ElementNotUtf8 { index: 1, .. });
}

#[test]
fn characters_split_between_strings_of_an_array() {
    // "é" as two strings of one byte: valid together, not one by one.
    let file = array(8, 3).string("a").u64(1).bytes(b"\xC3").u64(1).bytes(b"\xA9").0;
    refuses!(file, GgufError::ElementNotUtf8 { index: 1, .. });
}

#[test]
fn duplicate_keys() {
    let one = |raw: Raw, key| raw.string(key).u32(0).bytes(&[1]);
    let file = ["a", "b", "a"].into_iter().fold(Raw::header(0, 3), one).0;
    refuses!(file, GgufError::DuplicateKey { key } if key == "a");
}

fn alignment(alignment: u32) -> Vec<u8> {
    Raw::header(0, 1).string("general.alignment").u32(4).u32(alignment).0
}

#[test]
fn alignment_0() {
    refuses!(alignment(0), GgufError::AlignmentZero);
}

#[test]
fn alignment_3() {
    refuses!(alignment(3), GgufError::AlignmentNotPowerOfTwo { alignment: 3 });
    refuses!(alignment(u32::MAX), GgufError::AlignmentNotPowerOfTwo { .. });
}

#[test]
fn alignment_huge() {
    refuses!(alignment(1 << 31), GgufError::AlignmentTooLarge { .. });
    refuses!(alignment(1 << 22), GgufError::AlignmentTooLarge { .. });
}

#[test]
fn alignment_of_the_wrong_type() {
    let check = |id: u32, value: Raw, kind: Kind| {
        let file = Raw::header(0, 1).string("general.alignment").u32(id).bytes(&value.0).0;
        refuses!(file, GgufError::AlignmentType { found } if *found == kind);
    };
    let raw = Raw::default;
    check(10, raw().u64(32), Kind::One(ValueType::U64));
    check(5, raw().u32(32), Kind::One(ValueType::I32));
    check(8, raw().string("32"), Kind::One(ValueType::String));
    check(9, raw().u32(4).u64(1).u32(32), Kind::Array(ValueType::U32));
}

#[test]
fn valid_alignments() {
    for value in [1, 2, 8, 32, 64, 4096, 65_536, 1 << 21] {
        assert_eq!(open(alignment(value)).unwrap().alignment(), value);
    }
}
