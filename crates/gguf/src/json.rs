//! Metadata values as JSON.

use std::fmt::Display;

use crate::{Array, Value};

impl Value {
    /// The value as JSON text. Floats keep their shortest spelling (0.95, not 0.949999988079071), which a conversion to f64 would
    /// lose; numbers that JSON does not have, such as NaN, become null.
    pub fn json(&self) -> String {
        match self {
            Self::F32(n) => float(n, n.is_finite()),
            Self::F64(n) => float(n, n.is_finite()),
            Self::Bool(flag) => flag.to_string(),
            Self::String(text) => quoted(text),
            Self::Array(array) => elements(array),
            number => number.integer().map_or_else(|| "null".into(), integer),
        }
    }
}

fn float(n: &dyn Display, is_finite: bool) -> String {
    if is_finite { n.to_string() } else { "null".into() }
}

/// The widest integers of a file are u64 and i64.
fn integer(n: i128) -> String {
    u64::try_from(n)
        .map_or_else(|_| i64::try_from(n).unwrap_or(i64::MIN).to_string(), |n| n.to_string())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn elements(array: &Array) -> String {
    match array {
        Array::F32(all) => list(&mut all.iter().map(|n| float(n, n.is_finite()))),
        Array::F64(all) => list(&mut all.iter().map(|n| float(n, n.is_finite()))),
        Array::Bool(all) => list(&mut all.iter().map(bool::to_string)),
        Array::String(all) => list(&mut all.iter().map(quoted)),
        numbers => list(&mut numbers.integers().into_iter().flatten().map(integer)),
    }
}

fn list(items: &mut dyn Iterator<Item = String>) -> String {
    let mut text = String::from("[");
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&item);
    }
    text + "]"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use crate::{Array, StringArray, Value};

    #[test]
    fn values_of_every_type() {
        let strings: StringArray = ["a", "\"b\""].into_iter().collect();
        for (value, wanted) in [
            (Value::U8(255), json!(255)),
            (Value::I8(-128), json!(-128)),
            (Value::U16(7), json!(7)),
            (Value::I16(-7), json!(-7)),
            (Value::U32(32), json!(32)),
            (Value::I32(-32), json!(-32)),
            (Value::U64(u64::MAX), json!(u64::MAX)),
            (Value::I64(i64::MIN), json!(i64::MIN)),
            (Value::F32(0.95), json!(0.95)),
            (Value::F32(1e-6), json!(1e-6)),
            (Value::F32(f32::NAN), json!(null)),
            (Value::F32(f32::INFINITY), json!(null)),
            (Value::F64(0.1), json!(0.1)),
            (Value::F64(f64::NEG_INFINITY), json!(null)),
            (Value::Bool(true), json!(true)),
            (Value::String("x".into()), json!("x")),
            (Value::Array(Array::U64(vec![0, u64::MAX])), json!([0, u64::MAX])),
            (Value::Array(Array::F32(vec![0.1, f32::NAN])), json!([0.1, null])),
            (Value::Array(Array::Bool(vec![])), json!([])),
            (Value::Array(Array::String(strings)), json!(["a", "\"b\""])),
        ] {
            let read: serde_json::Value = serde_json::from_str(&value.json()).expect("JSON");
            assert_eq!(read, wanted, "{value:?}");
        }
        assert_eq!(Value::F32(0.95).json(), "0.95");
        assert_eq!(Value::F32(1e6).json(), "1000000");
    }

    proptest! {
        #[test]
        fn floats_come_back_bit_for_bit(n: f32) {
            prop_assume!(n.is_finite());
            let written = Value::F32(n).json();
            let read: f32 = written.parse().expect("a number");
            prop_assert_eq!(read.to_bits(), n.to_bits());
            serde_json::from_str::<serde_json::Value>(&written).expect("JSON");
        }
    }
}
