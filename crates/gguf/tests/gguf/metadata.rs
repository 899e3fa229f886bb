//! Typed access to metadata.

use rullama_gguf::{Gguf, GgufError, Kind, Optional, StringArray, Value, ValueType, Writer};

use crate::support::open;

fn file() -> Gguf {
    let strings: StringArray = ["x", "y"].into_iter().collect();
    let writer = Writer::new()
        .kv("u8", 8u8)
        .kv("i8", -8i8)
        .kv("u16", 16u16)
        .kv("i16", -16i16)
        .kv("u32", 32u32)
        .kv("i32", 33i32)
        .kv("u64", u64::MAX)
        .kv("i64", -64i64)
        .kv("f32", 0.5f32)
        .kv("f64", 0.25f64)
        .kv("bool", true)
        .kv("str", "text")
        .kv("strs", strings)
        .kv("i32s", vec![-1i32, 2])
        .kv("u32s", vec![3u32])
        .kv("u64s", vec![1u64, u64::MAX])
        .kv("f32s", vec![1.0f32])
        .kv("bools", vec![true, false]);
    open(writer.finish().unwrap()).unwrap()
}

#[test]
fn typed_values() {
    let gguf = file();
    assert_eq!(gguf.u32("u32").unwrap(), 32);
    assert_eq!(gguf.u32("u8").unwrap(), 8);
    assert_eq!(gguf.u32("i32").unwrap(), 33);
    assert_eq!(gguf.u64("u64").unwrap(), u64::MAX);
    assert_eq!(gguf.f32("f32").unwrap(), 0.5);
    assert!(gguf.bool("bool").unwrap());
    assert_eq!(gguf.str("str").unwrap(), "text");
    assert_eq!(gguf.strings("strs").unwrap().iter().collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!(gguf.integers("i32s").unwrap(), [-1, 2]);
    assert_eq!(gguf.integers("u32s").unwrap(), [3]);
    assert_eq!(gguf.integers("i64").unwrap(), [-64]);
    assert_eq!(gguf.floats("f32s").unwrap(), [1.0]);
    assert_eq!(gguf.bools("bools").unwrap(), [true, false]);
    assert_eq!(gguf.get("f64"), Some(&Value::F64(0.25)));
    assert_eq!(gguf.get("nothing"), None);
    let keys: Vec<_> = gguf.metadata().iter().map(|entry| &*entry.key).collect();
    assert_eq!(keys[..3], ["u8", "i8", "u16"], "file order is kept");
}

fn check_type<T: std::fmt::Debug>(result: Result<T, GgufError>, kind: Kind) {
    match result.unwrap_err() {
        GgufError::WrongType { found, .. } => assert_eq!(found, kind),
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_types_are_named() {
    let gguf = file();
    check_type(gguf.u32("str"), Kind::One(ValueType::String));
    check_type(gguf.u32("f32"), Kind::One(ValueType::F32));
    check_type(gguf.u32("bool"), Kind::One(ValueType::Bool));
    check_type(gguf.u32("u32s"), Kind::Array(ValueType::U32));
    check_type(gguf.f32("u32"), Kind::One(ValueType::U32));
    check_type(gguf.bool("u8"), Kind::One(ValueType::U8));
    check_type(gguf.str("strs"), Kind::Array(ValueType::String));
    check_type(gguf.strings("str"), Kind::One(ValueType::String));
    check_type(gguf.integers("f32s"), Kind::Array(ValueType::F32));
    check_type(gguf.floats("i32s"), Kind::Array(ValueType::I32));
    check_type(gguf.bools("strs"), Kind::Array(ValueType::String));
    let message = gguf.u32("strs").unwrap_err().to_string();
    assert!(message.contains("strs") && message.contains("u32"), "{message}");
    assert!(message.contains("array of string"), "{message}");
}

#[test]
fn numbers_out_of_range() {
    let gguf = file();
    for key in ["i8", "i16", "i64", "u64"] {
        assert!(matches!(gguf.u32(key), Err(GgufError::OutOfRange { .. })), "{key}");
    }
    assert!(matches!(gguf.u64("i64"), Err(GgufError::OutOfRange { value: -64, .. })));
    assert!(matches!(gguf.integers("u64s"), Err(GgufError::OutOfRange { .. })));
}

#[test]
fn missing_keys_differ_from_wrong_types() {
    let gguf = file();
    assert!(matches!(gguf.u32("nothing"), Err(GgufError::MissingKey { key }) if key == "nothing"));
    assert_eq!(gguf.u32("nothing").optional().unwrap(), None);
    assert_eq!(gguf.u32("u32").optional().unwrap(), Some(32));
    assert!(matches!(gguf.u32("str").optional(), Err(GgufError::WrongType { .. })));
}
